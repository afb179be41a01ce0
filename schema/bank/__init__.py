"""The bank database, as TPC-B has it, and its size by its number of branches.

Apart from the tables, so that a loader process starts without SQLAlchemy: half of its start would go into that import.
"""

TELLERS_PER_BRANCH = 10
ACCOUNTS_PER_BRANCH = 100_000

# Account numbers are `integer`, as pgbench has them up to this scale (about 330 GB).
MOST_BRANCHES = 20_000

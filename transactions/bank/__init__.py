"""The bank: one short transaction that updates three rows and inserts one, as TPC-B and pgbench have it.

Derived from TPC-B, and not comparable with published TPC results: no audit, no think time rule, no scaling of branches
with throughput. It shows how fast a server commits small writes over random pages.
"""

from functools import partial

from stallmark.transactions.bank.transfer import Transfer
from stallmark.transactions.workload import Condition, UserLoad, Workload, WorkloadContext

_condition = partial(Condition.from_file, __name__)


def _share(around: WorkloadContext) -> range:
    return around.part(around.scale["branches"])


WORKLOAD = Workload(
    name="bank",
    version=1,
    schema="bank",
    tables="stallmark.schema.bank.tables",
    conditions=(
        _condition("branch_tellers", "a branch's balance is the sum of its tellers' balances", "cheap"),
        _condition("branch_history", "a branch's balance is the sum of its history"),
        _condition("teller_history", "a teller's balance is the sum of its history"),
        _condition("account_history", "an account's balance is the sum of its history"),
        _condition("history_teller", "a history row names the branch of its teller"),
        _condition("rows", "as many branches, tellers and accounts as the scale says"),
        _condition("belongs", "tellers and accounts belong to their branch"),
    ),
    package=__name__,
    cells_by="branches",
    users=UserLoad({Transfer: 1}, share=_share, counted={Transfer: "SELECT COUNT(*) FROM bank.history"}),
)

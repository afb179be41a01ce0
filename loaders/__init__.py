"""Fill the tables: pure batch generators, the load plan, and the ledger that makes a load resumable."""

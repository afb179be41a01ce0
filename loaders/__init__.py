"""How the tables are filled: pure batch generators, the load plan, the ledger that makes a load resumable."""

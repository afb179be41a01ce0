"""The bank database, as TPC-B has it."""

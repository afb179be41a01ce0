"""The brokerage database, derived from TPC-E: 33 tables, 50 foreign keys."""

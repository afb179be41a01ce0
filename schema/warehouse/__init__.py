"""The warehouse database, derived from TPC-H."""

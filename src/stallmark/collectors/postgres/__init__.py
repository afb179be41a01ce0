"""Collectors of PostgreSQL 16 and later."""

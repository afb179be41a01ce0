"""Runs of queries: figures, tables, terminal."""

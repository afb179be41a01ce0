"""Real PostgreSQL servers."""

from support.clusters import cluster, engine, user

__all__ = ["cluster", "engine", "user"]

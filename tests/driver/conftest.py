"""Real PostgreSQL servers, and loads to drive."""

from support.clusters import cluster, engine, load, market, user

__all__ = ["cluster", "engine", "load", "market", "user"]

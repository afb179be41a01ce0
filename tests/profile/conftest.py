"""Real PostgreSQL servers of several versions."""

from support.clusters import cluster

__all__ = ["cluster"]

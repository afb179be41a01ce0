"""Servers with a small database of a user's."""

from support.clusters import cluster, clusters, engine

__all__ = ["cluster", "clusters", "engine"]

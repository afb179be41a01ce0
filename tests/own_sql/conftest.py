"""Servers with a small database of a user's."""

from support.clusters import cluster, clusters, engine
from support.own_sql import shop

__all__ = ["cluster", "clusters", "engine", "shop"]

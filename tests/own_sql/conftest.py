"""Servers with a small database of a user's."""

from support.clusters import cluster, clusters, engine
from support.own_sql import empty, shop

__all__ = ["cluster", "clusters", "empty", "engine", "shop"]

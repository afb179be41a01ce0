"""Servers with a small database of a user's."""

from support.clusters import cluster, clusters, engine
from support.memory import tmp_path
from support.own_sql import empty, shop
from support.read_once import kept_summaries, read_once

__all__ = ["cluster", "clusters", "empty", "engine", "kept_summaries", "read_once", "shop", "tmp_path"]

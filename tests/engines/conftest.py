"""Servers of a test's own to kill, and sessions on PostgreSQL."""

from support.clusters import cluster, engine, user
from support.embedded_servers import aside, make_server, server, sessions, table
from support.memory import tmp_path

__all__ = ["aside", "cluster", "engine", "make_server", "server", "sessions", "table", "tmp_path", "user"]

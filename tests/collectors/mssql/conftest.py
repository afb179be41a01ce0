"""A server that answers what a test scripts."""

from support.scripted_server import new_server, server

__all__ = ["new_server", "server"]

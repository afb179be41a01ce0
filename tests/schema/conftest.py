"""A server that answers what a test scripts, and the engine that asks it through the real ODBC driver."""

from support.mssql_server import engine, script, server

__all__ = ["engine", "script", "server"]

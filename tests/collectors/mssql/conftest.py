"""SQL Servers that answer what a test scripts, by version and edition."""

import pytest
from support.mssql_server import Server, new_server

__all__ = ["new_server"]


@pytest.fixture
def server(new_server) -> Server:
    return new_server()

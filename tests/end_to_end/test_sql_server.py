"""A SQL Server by URL: its password is told nobody."""

import pytest
import sqlalchemy as sa
from support.tool import Tool

from stallmark.engines.mssql.address import Address

pytestmark = pytest.mark.sqlserver("container")


def test_the_password_is_in_no_file_that_is_left(shared_sqlserver):
    password = Address.parse(shared_sqlserver.environment["STALLMARK_SERVER"]).password
    if not password:
        pytest.skip("This server takes us without a password.")
    files = [path for path in shared_sqlserver.folder.rglob("*") if path.is_file()]
    assert any(path.suffix == ".parquet" for path in files)
    assert [path for path in files if password.encode() in path.read_bytes()] == []


def test_a_wrong_password_is_one_sentence(shared_sqlserver):
    url = sa.make_url(shared_sqlserver.environment["STALLMARK_SERVER"]).set(password="wr0ng-h0rse")
    other = Tool.on_server(shared_sqlserver.folder, url.render_as_string(hide_password=False))
    code, said = other.run("run", other.scenario())
    assert code == 3 and "the login was refused" in said and "wr0ng" not in said

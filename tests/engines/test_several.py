"""Several databases of one server: what they are called, how they are made, and what is asked of all of them."""

import re
from types import MappingProxyType

import pytest
from support.mssql_server import answering, engine_at, rows, says_it_is
from support.tds.answers import Count, Error, Rows
from support.tds.datatypes import INT
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark import engines
from stallmark.driver.load import LoadSpec
from stallmark.engines.base import Engine, ServerSettings
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.engines.postgres.engine import PostgresEngine
from stallmark.errors import StallmarkError
from stallmark.experiment.work import with_databases


def test_on_sql_server_they_are_named_after_that_of_the_url(monkeypatch):
    script = Script(databases=["master", "bank", "Bench_mail"])
    says_it_is(script)
    script.sql(r"SELECT DB_NAME\(\)", rows(["name"], ("Bench",)))
    script.sql(r"SELECT DB_ID\(", Rows([Column("id", INT)], [(None,)]))
    script.sql("CREATE DATABASE|SET AUTO_CLOSE OFF$", Count(0))
    with answering(script) as server:
        engine = engine_at(server)
        names = engines.with_databases(engine, ["bank", "mail"])
        assert names == ["Bench_bank", "Bench_mail"]
        assert [one.address.database for one in engine.databases()] == names
        assert engine.database_of("mail") is engine.databases()[1] and engine.database_of("warehouse") is engine
        engines.make_databases(engine, names)
        made = [it.text for it in server.requests if re.search("CREATE|ALTER", it.text or "")]
    assert made == [
        "CREATE DATABASE [Bench_bank]", "ALTER DATABASE [Bench_bank] SET AUTO_CLOSE OFF",
        "CREATE DATABASE [Bench_mail]", "ALTER DATABASE [Bench_mail] SET AUTO_CLOSE OFF",
    ]  # fmt: skip


def test_a_login_that_may_not_make_them_is_told_what_to_do():
    script = Script(databases=["master", "bank"])
    says_it_is(script)
    script.sql(r"SELECT DB_ID\(", Rows([Column("id", INT)], [(None,)]))
    script.sql("CREATE DATABASE", Error(262, "CREATE DATABASE permission denied in database 'master'."))
    with answering(script) as server, pytest.raises(StallmarkError, match="GRANT CREATE ANY DATABASE"):
        engines.make_databases(engine_at(server), ["bench_bank"])


def test_each_database_of_sql_server_keeps_its_own_copy():
    script = Script(databases=["master", "bank"])
    says_it_is(script)
    script.sql(r"SELECT DB_NAME\(\)", rows(["name"], ("bench",)))
    with answering(script) as server:
        engine = engine_at(server)
        assert engines.copied(engine) == (engine,)
        engines.with_databases(engine, ["bank", "mail"])
        assert engines.copied(engine) == engine.databases() and len(engine.databases()) == 2


def test_on_a_postgresql_by_url_they_are_made_and_used(embedded_server: EmbeddedServer):
    EmbeddedEngine(embedded_server, "work")
    engine = PostgresEngine(embedded_server.url("work"))
    names = engines.with_databases(engine, ["bank", "mail"])
    assert names == ["work_bank", "work_mail"] and not any(map(engine.has_database, names))
    engines.make_databases(engine, names)
    engines.make_databases(engine, names)  # those that are there are left
    assert [one.database_name() for one in engine.databases()] == names
    engine.database_of("mail").execute("CREATE TABLE only_here (a int)")
    assert engine.schemas_in_use() == {} and engine.database_of("mail").schemas_in_use() == {"public": ["only_here"]}
    specs = [LoadSpec(name, name, {}, {}, (1,), 1, 5.0) for name in ("mail", "bank")]
    assert [one.database for one in with_databases(specs, engine)] == ["work_mail", "work_bank"]
    assert [one.database for one in with_databases(specs, PostgresEngine(embedded_server.url("work")))] == [None, None]


class Told(Engine):
    """A database with settings."""

    variant_settings = MappingProxyType({})

    def __init__(self, name: str, configuration: dict[str, str]):
        self.name, self.configuration = name, configuration

    def database_name(self) -> str:
        return self.name

    def settings(self) -> ServerSettings:
        return ServerSettings(self.configuration, placement={f"file {self.name}": "/data"})


Told.__abstractmethods__ = frozenset()


def test_settings_name_the_database_whose_they_are_where_they_differ():
    engine = Told("main", {})
    first = Told("x_bank", {"database recovery model": "SIMPLE", "server memory": "4 GiB"})
    second = Told("x_mail", {"database recovery model": "FULL", "server memory": "4 GiB"})
    engine.by_workload = {"bank": first, "mail": second}
    found = engines.settings(engine)
    assert found.configuration == first.configuration | {"x_mail: database recovery model": "FULL"}
    assert found.placement == {"file x_bank": "/data", "x_mail: file x_mail": "/data"}

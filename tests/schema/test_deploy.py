"""Tables first, keys later, and what is there is not made again."""

import re
import threading

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import mssql, postgresql
from sqlalchemy.schema import CreateTable
from support.embedded_servers import copied
from support.mssql_server import answering, engine_at, rows, says_it_is
from support.tds.answers import Count, Error, Rows
from support.tds.datatypes import BIT, INT, nvarchar
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import CallFailed, StallmarkError
from stallmark.schema import ddl, deploy
from stallmark.schema.bank import tables as bank
from stallmark.schema.ddl import ddl_of
from stallmark.schema.deploy import OWN_TABLES, drop_schemas, routines, things_of_others
from stallmark.transactions import WORKLOADS, find_workload

PROCEDURES = "CREATE OR REPLACE FUNCTION shop.one() RETURNS int LANGUAGE sql AS 'SELECT 1'"
CONSTRAINTS = """
SELECT conname FROM pg_constraint c JOIN pg_namespace n ON n.oid = c.connamespace
 WHERE nspname = 'shop' AND contype <> 'n' ORDER BY 1"""
INDEXES = "SELECT indexname FROM pg_indexes WHERE schemaname = 'shop' ORDER BY 1"


def shop() -> sa.MetaData:
    metadata = sa.MetaData(schema="shop", naming_convention=bank.METADATA.naming_convention)
    sa.Table(
        "buyer",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("email", sa.String(40)),
        sa.UniqueConstraint("email", name="buyer_email_key"),
    )
    sa.Table(
        "sale",
        metadata,
        sa.Column("id", sa.BigInteger, primary_key=True),
        sa.Column("buyer_id", sa.ForeignKey("shop.buyer.id")),
        sa.Column("amount", sa.Integer),
        sa.CheckConstraint("amount > 0", name="sale_amount_check"),
        sa.Index("sale_buyer_ix", "buyer_id"),
    )
    return metadata


def names(database: EmbeddedEngine, question: str) -> list[str]:
    return [name for (name,) in database.query(question)]


def finish(database: EmbeddedEngine, metadata: sa.MetaData) -> list[str]:
    steps: dict[str, list[float]] = {}
    deploy.finish(
        database, ddl_of(metadata), PROCEDURES, rows={"shop.sale": 900_000, "shop.buyer": 100_000}, workers=2,
        step=lambda what, done: steps.setdefault(what, []).append(done),
    )  # fmt: skip
    assert all(done == sorted(done) and done[0] == 0 for done in steps.values())
    assert len(steps["statistics"]) == 3 and 0 < steps["statistics"][1] < 1 == steps["statistics"][-1]
    return list(steps)


def test_bare_then_keyed(database: EmbeddedEngine) -> None:
    metadata = shop()
    for _ in range(2):  # a second build finds them
        deploy.create_tables(database, ddl_of(metadata).tables)
    assert names(database, CONSTRAINTS) == ["sale_amount_check"]
    assert names(database, INDEXES) == []
    assert finish(database, metadata) == ["statistics", "keys and indexes", "foreign keys", "procedures"]
    keys = ["buyer_email_key", "buyer_pkey", "sale_amount_check", "sale_buyer_id_fkey", "sale_pkey"]
    assert names(database, CONSTRAINTS) == keys
    assert names(database, INDEXES) == ["buyer_email_key", "buyer_pkey", "sale_buyer_ix", "sale_pkey"]
    assert database.query("SELECT shop.one()") == [(1,)]


LEFT_UNCHECKED = """
ALTER TABLE shop.sale DROP CONSTRAINT sale_buyer_id_fkey;
ALTER TABLE shop.sale ADD CONSTRAINT sale_buyer_id_fkey FOREIGN KEY (buyer_id) REFERENCES shop.buyer NOT VALID"""


def test_an_interrupted_step_is_completed(database: EmbeddedEngine) -> None:
    metadata = shop()
    deploy.create_tables(database, ddl_of(metadata).tables)
    finish(database, metadata)
    whole = names(database, CONSTRAINTS), names(database, INDEXES)
    for interruption in (
        "ALTER TABLE shop.sale DROP CONSTRAINT sale_pkey",
        "ALTER TABLE shop.buyer DROP CONSTRAINT buyer_email_key",
        "ALTER TABLE shop.sale DROP CONSTRAINT sale_buyer_id_fkey",
        "DROP INDEX shop.sale_buyer_ix",
        "DROP FUNCTION shop.one()",
        LEFT_UNCHECKED,
    ):
        database.execute(interruption)
        finish(database, metadata)
        assert (names(database, CONSTRAINTS), names(database, INDEXES)) == whole
        assert database.query("SELECT shop.one()") == [(1,)]
        assert database.query("SELECT bool_and(convalidated) FROM pg_constraint WHERE contype = 'f'") == [(True,)]


def add_index_that_fails(error: Error) -> list[str]:
    """Return what SQL Server is asked to create, in order, when its catalogue shows no index and to make one fails."""
    script = Script()
    says_it_is(script)
    script.sql("ALTER TABLE")
    script.sql("sys.stats_columns", Rows([Column("name", nvarchar(128))]))
    script.sql("schema_name", Rows([Column("", nvarchar(128))], [("dbo",)]))
    script.sql("FROM sys.indexes", Rows([*(Column(it, nvarchar(128)) for it in "ti"), Column("k", BIT)]))
    script.sql("CREATE INDEX", error)
    with answering(script) as server:
        parts = ddl_of(shop())
        deploy.finish(engine_at(server), parts, "", rows={}, workers=1, step=lambda *_: None)
        return [name for it in server.requests for name in re.findall(r"(?:CONSTRAINT|INDEX) (\w+)", it.text)]


@pytest.mark.parametrize("number", [1913, 2714])
def test_an_index_that_the_catalogue_does_not_show_is_there_and_is_left(number):
    assert add_index_that_fails(Error(number, "An index with this name already exists.")) == [
        "sale_pkey", "sale_buyer_ix", "buyer_pkey", "buyer_email_key", "sale_buyer_id_fkey",
    ]  # fmt: skip


def test_an_index_that_cannot_be_made_is_an_error():
    with pytest.raises(CallFailed, match=r"PRIMARY.*is full"):
        add_index_that_fails(Error(1105, "Could not allocate space: the 'PRIMARY' filegroup is full."))


def test_rows_without_a_parent_are_named(database: EmbeddedEngine) -> None:
    metadata = shop()
    deploy.create_tables(database, ddl_of(metadata).tables)
    database.execute("INSERT INTO shop.buyer VALUES (1), (2)")
    database.execute("INSERT INTO shop.sale SELECT n, nullif(n % 8, 3), 5 FROM generate_series(1, 20) n")
    for _ in range(2):  # the second build finds the key, but unchecked
        with pytest.raises(StallmarkError) as failure:
            finish(database, metadata)
        assert "shop.sale has rows whose buyer_id is not in shop.buyer" in str(failure.value)
        assert "id 4, buyer_id 4; id 5, buyer_id 5; id 6, buyer_id 6:" in str(failure.value)
    database.execute("DELETE FROM shop.sale WHERE buyer_id NOT IN (SELECT id FROM shop.buyer)")
    finish(database, metadata)


@pytest.mark.parametrize(
    ("doubled", "said"),
    [
        ("INSERT INTO shop.sale SELECT n / 2, 1, 5 FROM generate_series(2, 20) n",
         "shop.sale has several rows with the same id, the first id 1 (2 rows); id 2 (2 rows); id 3 (2 rows): mend"),
        ("INSERT INTO shop.buyer VALUES (5, 'a'), (6, 'a'), (7, NULL), (8, NULL), (9, 'b')",
         "shop.buyer has several rows with the same email, the first email a (2 rows): mend"),
        ("DROP INDEX shop.sale_buyer_ix; INSERT INTO shop.sale VALUES (1, 1, 5), (2, 1, 5)",
         "shop.sale has several rows with the same buyer_id, the first buyer_id 1 (2 rows): mend"),
    ],
    ids=["primary key", "unique constraint", "unique index"],
)  # fmt: skip
def test_rows_that_a_key_does_not_take_are_named(database: EmbeddedEngine, doubled: str, said: str) -> None:
    metadata = shop()
    if "DROP INDEX" in doubled:
        [index] = metadata.tables["shop.sale"].indexes
        index.unique = True
    deploy.create_tables(database, ddl_of(metadata).tables)
    database.execute("INSERT INTO shop.buyer VALUES (1)")
    database.execute(doubled.removeprefix("DROP INDEX shop.sale_buyer_ix; "))
    for _ in range(2):
        with pytest.raises(StallmarkError) as failure, deploy.failing_in_words(database, "Finishing the database"):
            finish(database, metadata)
        assert str(failure.value).startswith(said) and "continues" not in str(failure.value)


DOUBLE = Rows([Column("email", nvarchar(40)), Column("n", INT)], [("a@b", 3)])


@pytest.mark.parametrize(("number", "is_searched"), [(1505, True), (1105, False)])
def test_rows_are_searched_only_where_they_are_the_reason(number: int, is_searched: bool) -> None:
    script = Script()
    says_it_is(script)
    script.sql("schema_name", Rows([Column("", nvarchar(128))], [("dbo",)]))
    script.sql(r"HAVING count\(\*\) >", DOUBLE)
    script.sql("ADD CONSTRAINT buyer_email_key UNIQUE", Error(number, "It cannot be made."))
    metadata = shop()
    [key] = [item for item in ddl_of(metadata).keys if item.name == "buyer_email_key"]
    with answering(script) as server, deploy.connected(engine_at(server)) as connection:
        with (
            pytest.raises((StallmarkError, sa.exc.DBAPIError)) as failure,
            ddl.name_violations(engine_at(server), connection, key),
        ):
            connection.execute(sa.schema.AddConstraint(key))
        asked = [request.text for request in server.requests if "HAVING" in (request.text or "")]
    assert bool(asked) == is_searched
    assert ("same email, the first email a@b (3 rows)" in str(failure.value)) == is_searched


def test_a_server_that_is_gone_during_the_end_of_a_build_is_told(template) -> None:
    with copied(template) as server:
        database = EmbeddedEngine(server, "lost")
        with (
            pytest.raises(StallmarkError, match=r"^Finishing .* failed: No connection .*right\? What was done is kept"),
            deploy.failing_in_words(database, "Finishing the database"),
            deploy.exclusive(database, lambda: None),
        ):
            server.stop()
            finish(database, shop())


def test_taking_apart_leaves_the_original_whole() -> None:
    metadata = shop()
    before = [str(CreateTable(table)) for table in metadata.sorted_tables]
    ddl_of(metadata)
    assert [str(CreateTable(table)) for table in metadata.sorted_tables] == before
    assert [index.name for index in metadata.tables["shop.sale"].indexes] == ["sale_buyer_ix"]


@pytest.mark.parametrize("dialect", [postgresql.dialect(), mssql.dialect()], ids=["postgresql", "mssql"])
def test_statements_of_both_engines(dialect: sa.Dialect) -> None:
    bare = [str(CreateTable(t).compile(dialect=dialect)) for t in ddl_of(bank.METADATA).tables.sorted_tables]
    assert not any("KEY" in text or "IDENTITY" in text or "SERIAL" in text for text in bare)
    own = [str(CreateTable(table).compile(dialect=dialect)) for table in OWN_TABLES.sorted_tables]
    assert all("PRIMARY KEY" in text and "IDENTITY" not in text for text in own)


def test_one_at_a_time(database: EmbeddedEngine) -> None:
    locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND granted"
    with deploy.exclusive(database, lambda: None):
        assert database.query(locks) == [(1,)]
        with database.cursor() as other:
            other.execute("SET lock_timeout = '100ms'")
            with pytest.raises(Exception, match="lock timeout"):
                other.execute("SELECT pg_advisory_lock(hashtext('stallmark.build'))")


def test_who_waits_for_another_build_says_so_once_and_has_its_turn(database: EmbeddedEngine) -> None:
    waiting = threading.Event()
    told: list[str] = []

    def say() -> None:
        told.append("waiting")
        waiting.set()

    def second() -> None:
        with deploy.exclusive(database, say):
            told.append("in")

    with deploy.exclusive(database, lambda: told.append("never")):
        other = threading.Thread(target=second)
        other.start()
        assert waiting.wait(60)
        assert told == ["waiting"]
    other.join()
    assert told == ["waiting", "in"]


def test_sql_server_is_asked_for_the_lock_once_and_waits_itself() -> None:
    script = Script()
    script.sql("sp_getapplock", Count(0))
    with answering(script) as server, deploy.exclusive(engine_at(server), lambda: None):
        [asked] = [request.text for request in server.requests if "stallmark.build" in (request.text or "")]
    assert "@LockTimeout = -1" in asked and "IF @taken < 0" in asked


def test_a_lock_that_cannot_be_taken_ends_the_build() -> None:
    script = Script()
    script.sql("sp_getapplock", Error(50002, "The lock that one build at a time has cannot be taken."))
    with answering(script) as server:
        engine = engine_at(server)
        with (
            pytest.raises(StallmarkError, match="Preparing failed: The lock that one build"),
            deploy.failing_in_words(engine, "Preparing"),
            deploy.exclusive(engine, lambda: None),
        ):
            pytest.fail("it was not granted")


def test_batches_of_a_script() -> None:
    assert deploy.batches("CREATE A\nGO\nCREATE B -- go\n go \n\n") == ["CREATE A\n", "\nCREATE B -- go\n"]
    assert deploy.batches("CREATE A;\nCREATE B;") == ["CREATE A;\nCREATE B;"]


# Dropping what Stallmark has built, by name: nothing of others goes with it


def deployed(database: EmbeddedEngine, name: str) -> None:
    """A database as a build of nothing leaves it."""
    workload = find_workload(name)
    for metadata in (OWN_TABLES, workload.metadata):
        deploy.create_tables(database, metadata)
    for batch in deploy.batches(workload.procedures(database.dialect)):
        database.execute(batch)


@pytest.mark.parametrize("name", WORKLOADS)
def test_all_that_a_workload_makes_is_known_as_ours_and_dropped(database: EmbeddedEngine, name: str):
    deployed(database, name)
    used = database.schemas_in_use()
    assert used.keys() == {name, "stallmark"}
    assert things_of_others(used, database.dialect, find_workload(name)) == []
    assert drop_schemas(database, [find_workload(name)]) == [name, "stallmark"]
    assert database.schemas_in_use() == {}
    assert not database.query("SELECT nspname FROM pg_namespace WHERE nspname IN (%s, 'stallmark')", [name])


@pytest.mark.parametrize("name", WORKLOADS)
@pytest.mark.parametrize("dialect", ["postgresql", "mssql"])
def test_every_routine_of_a_workload_is_known_by_its_name(name: str, dialect: str):
    workload = find_workload(name)
    created = len(re.findall(r"^CREATE\b.*\b(?:FUNCTION|PROCEDURE)\b", workload.procedures(dialect), re.MULTILINE))
    known = routines(workload, dialect)
    assert len(known) == created and {schema for schema, _ in known} <= {name}


@pytest.mark.parametrize("statement", ["CREATE TABLE bank.audit (n integer)", "CREATE TYPE bank.audit"])
def test_what_came_in_between_keeps_its_schema(database: EmbeddedEngine, monkeypatch, statement: str):
    deployed(database, "bank")
    database.execute(statement)
    monkeypatch.setattr(database, "schemas_in_use", dict)
    with pytest.raises(CallFailed, match="cannot drop schema bank because other objects depend on it"):
        drop_schemas(database, [find_workload("bank")])
    assert database.query("SELECT count(*) FROM pg_type WHERE typname = 'audit'") == [(1,)]
    assert "stallmark" in schemas(database), "so the same command can be given again"


def schemas(database: EmbeddedEngine) -> set[str]:
    return {name for (name,) in database.query("SELECT nspname FROM pg_namespace")}


def test_on_a_sql_server_nothing_is_dropped_beside_what_others_have():
    script = Script(databases=["bank"])
    says_it_is(script)
    script.sql("FROM sys.objects", rows(["schema_name", "name"], ["bank", "accounts"], ["bank", "audit"]))
    script.sql("SCHEMATA|FROM \\[?sys\\]?\\.\\[?schemas", rows(["name"], ["bank"], ["stallmark"], ["dbo"]))
    script.sql(r"schema_name\(\)", rows([""], ["dbo"]))
    with answering(script) as server:
        with pytest.raises(StallmarkError, match=r"Nothing was dropped: .* has not made, bank\.audit\. Move"):
            drop_schemas(engine_at(server), [find_workload("bank")])
        assert not [request.text for request in server.requests if "DROP" in (request.text or "")]

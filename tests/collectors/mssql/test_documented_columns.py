"""Every column our SQL names is documented for every version the file serves: nobody here has a server to ask."""

import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ruamel.yaml import YAML

from stallmark.collectors import OF_STATEMENTS, ON_REQUEST, REGISTRY
from stallmark.collectors.mssql import MssqlCollector, azure_statement, known_as, statement, with_databases
from stallmark.collectors.mssql.counters import (
    _NAMED,
    _PHYSICAL,
    LogSpace,
    Performance,
    Procedures,
    Replicas,
    ServerIO,
    ServerWaits,
    SessionWaits,
    StatisticsUpdates,
)
from stallmark.collectors.mssql.io_latency import _FILES, _PRESENT, LogLatency, Volumes
from stallmark.collectors.mssql.moments import Cpu, ErrorLog
from stallmark.collectors.mssql.statements import QueryStoreState, StatementReads, Statements
from stallmark.collectors.mssql.waits import Blocking, Deadlocks, UserWaits
from stallmark.engines import sql_file

pytestmark = pytest.mark.thorough

VERSIONS = (14, 15, 16, 17)  # SQL Server 2017 to 2025
DOCUMENTED: dict[str, Any] = YAML(typ="safe").load(Path(__file__).with_name("documented_columns.yaml"))
ON_REQUEST_KINDS = [kind for kinds in ON_REQUEST["mssql"].values() for kind in kinds]
COLLECTORS = [
    kind
    for kind in (*REGISTRY["mssql"], OF_STATEMENTS["mssql"], Volumes, *ON_REQUEST_KINDS)
    if issubclass(kind, MssqlCollector)
]
QUERIES = [kind for kind in COLLECTORS if kind is not ErrorLog]  # which calls a procedure


class Query(NamedTuple):
    """Names in a query: its sources by alias (None for a table it builds itself), the columns that it asks for, with
    their alias, and the columns of its result."""

    sources: dict[str, str | None]
    columns: list[tuple[str, str]]
    answered: list[str]


# Comments and literals, in which a name is none; a quoted name is its words.
LITERAL = re.compile(r"--[^\n]*|N?'(?:[^']|'')*'|\[([^]]*)\]")
COLUMNS_OF_A_SUBQUERY = re.compile(r"(\) AS \w+) \([\w, ]+\)")
SOURCE = re.compile(r"\b(?:FROM|JOIN|APPLY) ([\w.]*) ?(?:§ ?)?(?:AS (\w+))?")
COLUMN = re.compile(r"\b([A-Za-z_]\w*)\.(\w+)\b(?! ?[.§])")
ALONE = re.compile(r"(?<![\w.@'])(?<!\bAS )([A-Za-z_]\w*)\b(?! ?[.§])")
WORDS = {
    "ALL", "AND", "AS", "BY", "CASE", "COLLATE", "CROSS", "DESC", "DISTINCT", "ELSE", "END", "GROUP", "HAVING", "IS",
    "LEFT", "LIKE", "NOT", "NULL", "ON", "OR", "ORDER", "OUTER", "PARTITION", "SELECT", "THEN", "UNION", "WHEN",
    "WHERE", "max", "millisecond", "minute", "DATABASE_DEFAULT", "Latin1_General_BIN2", "Latin1_General_CI_AS",
}  # fmt: skip
"""Words that stand alone in our queries and are no columns."""


@cache
def read(sql: str) -> Query:
    """Return the names in a query: of what is in brackets first, each time with § for it in what is around."""
    query = Query({}, [], [])

    def read_flat(text: str) -> str:
        for view, alias in SOURCE.findall(text):
            assert alias, f"{view} has no alias"
            query.sources[alias] = view or None
        rest = SOURCE.sub(" ", text)
        query.columns.extend(COLUMN.findall(rest))
        without_alias = {*ALONE.findall(rest)} - WORDS
        assert not without_alias, f"{without_alias} do not say whose they are"
        return "§"

    text = LITERAL.sub(lambda it: re.sub(r"\W", "_", it[1]) if it[1] else "" if it[0].startswith("--") else "''", sql)
    text = COLUMNS_OF_A_SUBQUERY.sub(r"\1", " ".join(text.split()))
    while "(" in text:
        text = re.sub(r"\(([^()]*)\)", lambda it: read_flat(it[1]), text)
    read_flat(text)
    asked = text.partition(" FROM ")[0]
    query.answered.extend(re.findall(r"\w+|§", item)[-1] for item in asked.split(","))
    return query


def documentation(view: str) -> dict[str, Any]:
    """With the name of a database in front, which is a workload's, it is the same view."""
    return DOCUMENTED.get(view) or DOCUMENTED[view.partition(".")[2]]


def check(sql: str, version: int | None) -> None:
    """`version` None: Azure SQL Database."""
    query = read(sql)
    for view in filter(None, query.sources.values()):
        where = documentation(view)["azure"]
        assert where is not False if version is None else where != "only", f"{view} is not there"
    assert query.columns
    for alias, column in query.columns:
        view = query.sources[alias]
        if view is None:
            continue
        documented = documentation(view)
        assert column in documented["columns"].split(), f"{view} has no column {column}"
        assert version is None or documented.get("since", {}).get(column, 0) <= version


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("kind", QUERIES)
def test_every_column_is_documented(kind: type[MssqlCollector], version: int) -> None:
    check(statement(kind.name, version), version)


@pytest.mark.parametrize("kind", [kind for kind in QUERIES if kind.on_azure or azure_statement(kind.name)])
def test_every_column_is_documented_for_azure(kind: type[MssqlCollector]) -> None:
    check(azure_statement(kind.name) or statement(kind.name, known_as(12, edition=5)), None)


def test_the_way_to_our_counters_on_azure_is_documented() -> None:
    sql = statement(Performance.name, known_as(12, edition=8)).replace(_NAMED, _PHYSICAL)
    assert _PHYSICAL in sql and _NAMED not in sql
    check(sql, 16)
    check(sql, None)


@pytest.mark.parametrize("kind", [ServerIO, Performance, UserWaits])
def test_what_is_asked_of_several_databases_is_documented(kind: type[MssqlCollector]) -> None:
    text = statement(kind.name, 17)
    assert text != with_databases(text, ["bank", "o'mail"])
    check(with_databases(text, ["bank", "o'mail"]), 17)


@pytest.mark.parametrize("sql", [_FILES, _PRESENT])
def test_every_column_of_the_questions_beforehand_is_documented(sql: str) -> None:
    for version in VERSIONS:
        check(sql, version)


OF_THE_ENGINE = {
    statement.key: statement.text
    for path in files("stallmark.engines.mssql").iterdir()
    if path.name.endswith(".sql")
    for statement in sql_file.split(path.read_text())
}


@pytest.mark.parametrize("name", [name for name in OF_THE_ENGINE if name.startswith("settings")])
def test_every_column_of_the_settings_is_documented(name: str) -> None:
    since = int(name.partition(".")[2] or VERSIONS[0])
    text = OF_THE_ENGINE[name]
    asks_no_view = "SELECT CAST(SERVERPROPERTY(" in text or "SELECT CAST(DATABASEPROPERTYEX(" in text
    for version in VERSIONS:
        if version >= since and not asks_no_view:
            check(text, version)


def test_every_column_of_what_is_asked_around_a_run_is_documented() -> None:
    for name, versions in {
        "rights_restore": VERSIONS,
        "in_group": VERSIONS,
        "parameters": (*VERSIONS, None),
        "columns_without_statistics": (*VERSIONS, None),
        "schemas_in_use": (*VERSIONS, None),
        "indexes": (*VERSIONS, None),
        "free_space": VERSIONS,
        "kept_copies": VERSIONS,
        "query_noted": (14, None),
        "query_noted.15": VERSIONS[1:],
    }.items():
        for version in versions:
            check(OF_THE_ENGINE[name].replace("= ?", "= N'x'").replace("{session}", "51"), version)


def test_names_of_a_query() -> None:
    sql = """
        SELECT TOP (1) a.[x] AS [file], MAX(CASE WHEN b.y = 'c.z' THEN 1.5 END), (SELECT MAX(d.u) FROM e.f AS d) AS u
          FROM g.h(NULL, k.v) AS a -- FROM nowhere
          JOIN (SELECT l.w FROM [it's].sys.m AS l) AS b (y, [z]) ON b.n = 'it''s (o.p'"""
    sources = {"a": "g.h", "b": None, "d": "e.f", "l": "it_s.sys.m"}
    columns = {("a", "x"), ("b", "y"), ("d", "u"), ("k", "v"), ("l", "w"), ("b", "n")}
    query = read(sql)
    assert (query.sources, {*query.columns}, query.answered) == (sources, columns, ["file", "§", "u"])


def test_the_check_finds_what_is_wrong() -> None:
    with pytest.raises(AssertionError, match="has no column num_of_syncs"):
        check("SELECT io.num_of_syncs AS n FROM sys.dm_io_virtual_file_stats(NULL, NULL) AS io", 16)
    with pytest.raises(AssertionError, match="whose"):
        check("SELECT num_of_reads AS n FROM sys.dm_io_virtual_file_stats(NULL, NULL) AS io", 16)
    with pytest.raises(AssertionError, match="is not there"):
        check("SELECT named.name AS n FROM sys.master_files AS named", None)
    with pytest.raises(AssertionError):
        check(statement("procedures", 15), 14)


@pytest.mark.parametrize("name", [path.name for path in files("stallmark.collectors.mssql").iterdir()])
def test_every_file_belongs_to_a_collector(name: str) -> None:
    if name.endswith(".sql"):
        assert name.partition(".")[0] in {kind.name for kind in COLLECTORS}


@pytest.mark.parametrize("kind", QUERIES)
def test_the_answer_has_the_columns_of_the_table(kind: type[MssqlCollector]) -> None:
    texts = {statement(kind.name, version) for version in VERSIONS} | {azure_statement(kind.name) or ""}
    for sql in filter(None, texts):
        if kind is UserWaits:
            assert read(sql).answered == ["application", "status", "wait_type", "users"]
        elif issubclass(kind, LogLatency):
            assert read(sql).answered == ["server_time", "epoch", "session", "dropped", "histogram"]
        elif kind is Cpu:
            assert read(sql).answered == ["server_time", "age_ms", "platform", "record"]
        elif kind is Blocking:
            assert read(sql).answered == ["blocked", "blocker", "wait_type"]
        elif kind is Volumes:
            assert read(sql).answered == ["machine", "mount_point"]
        elif kind is StatisticsUpdates:
            assert read(sql).answered == ["server_time", "table", "statistic", "counted_at"]
        elif kind is StatementReads:
            assert read(sql).answered == [*kind.columns.names, "declared"]
        elif kind is Deadlocks:
            assert read(sql).answered == ["happened", "event"]
        elif kind is Statements:  # what it names itself, and what it asks for a plan with
            own = {"statement", "planned", "position"}
            assert {*read(sql).answered} - {"begins", "ends", "plan_handle", "database"} == {*kind.columns.names} - own
        else:
            ours = {"wait_class", "benign"} if kind in (ServerWaits, SessionWaits) else set()
            ours |= {"database"} if kind in (LogSpace, QueryStoreState) else set()
            told = {"database"} if kind in (Procedures, Replicas) else set()
            asked = [name for name in read(sql).answered if name not in told]
            assert asked == [name for name in kind.columns.names if name not in ours]


def test_the_error_log_is_asked_as_documented() -> None:
    """sp_readerrorlog takes the number of the log, 1 for SQL Server's, and up to two strings to search for."""
    sql = re.sub(r"--.*", "", statement(ErrorLog.name, 14))
    assert sql.split() == ["SET", "NOCOUNT", "ON;", "EXEC", "sys.sp_readerrorlog", "0,", "1,", "N'offset';"]


MANY_ASK = {f"sys.dm_exec_{name}" for name in ("sessions", "requests", "procedure_stats", "sql_text")} | {
    "sys.dm_os_sys_info"
}
"""They have a row for each session or procedure of ours, or one alone, and cost next to nothing."""


def test_no_view_is_asked_by_two_collectors_at_once() -> None:
    """A view that costs something is read once per interval, by one collector; catalogue views are cheap. Batches of
    own SQL, which the others leave out, are read for such a load alone."""
    seen: dict[str, str] = {}
    for kind in set(QUERIES) - {StatementReads}:
        for view in filter(None, read(statement(kind.name, 17)).sources.values()):
            if ".dm_" in view and view not in MANY_ASK:
                assert seen.setdefault(view, kind.name) == kind.name, view

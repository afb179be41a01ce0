"""The reads of each statement of SQL of a user's own, as the extension pg_stat_statements counts them.

The server names what it counts by a number that it computes from a parsed statement. It tells the number of ours when
it is asked to explain their texts, so no text is compared.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql

from stallmark.collectors.base import STATEMENT_READS, statement_names
from stallmark.collectors.postgres.collector import PostgresCollector, statement
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed
from stallmark.transactions.workload import StatementFacts

_EXPLAIN = "EXPLAIN (VERBOSE, GENERIC_PLAN, FORMAT JSON) "
_SCHEMA = "SELECT pronamespace::regnamespace::text FROM pg_proc WHERE proname = 'pg_stat_statements_info'"
_COUNTED = "SELECT count(*) FROM {}.pg_stat_statements_info()"


class StatementReads(PostgresCollector):
    name = "statement_reads"
    title = "Reads of statements"
    help = (
        "Executions and pages of each statement of SQL of a user's own (pg_stat_statements). Those that the server "
        "executes without a plan, such as COMMIT, have no row."
    )
    interval_s = 5.0
    columns = STATEMENT_READS

    def __init__(self, engine: Engine, statements: Mapping[str, Sequence[StatementFacts]]):
        super().__init__(engine)
        self._statements = statement_names(statements)
        self._alike: list[str] = []

    def unavailable(self) -> str | None:
        with self.engine.cursor() as cursor:
            schema = cursor.execute(_SCHEMA).fetchone()
            if schema is None and self.engine.is_local:
                return "The embedded PostgreSQL comes without the extension pg_stat_statements."
            if schema is None:
                return (
                    "The database has no extension pg_stat_statements: put it into shared_preload_libraries, restart "
                    "the server, and run CREATE EXTENSION pg_stat_statements;"
                )
            try:
                cursor.execute(_COUNTED.format(schema[0]))
            except psycopg.Error as error:
                return f"pg_stat_statements counts nothing here ({str(error).strip().splitlines()[0]})."
        identities = self._identities()
        counts = Counter((database, identity) for _, database, identity in identities)
        self._alike = [name for name, database, identity in identities if counts[database, identity] > 1]
        known = [ours for ours in identities if counts[ours[1:]] == 1]
        if not known:
            return "The server tells no identity of these statements: set compute_query_id = on (or auto)."
        text = statement(self.name, self.major)
        assert text
        # The query has no parameters of its own, so that it can be prepared once.
        rows = [sql.SQL("({}, {}, {}::bigint)").format(*map(sql.Literal, ours)).as_string() for ours in known]
        self.sql = text.format(schema=schema[0], statements=", ".join(rows))
        return None

    def limitation(self) -> str | None:
        if not self._alike:
            return None
        return f"The server counts these statements as one, so their reads are not known: {', '.join(self._alike)}."

    def _identities(self) -> list[tuple[str, str, int]]:
        """Return name, database and identity of each statement that the server plans."""
        identities = []
        for workload, facts in self._statements.items():
            engine = self.engine.database_of(workload)
            database = engine.database_name()
            with engine.cursor() as cursor:
                for name, fact in facts.items():
                    if (identity := _identity(cursor, fact.sql)) is not None:
                        identities.append((name, database, identity))
        return identities


def _identity(cursor: psycopg.Cursor[Any], text: str) -> int | None:
    """Return the server's number of a statement, or None if it has none."""
    try:
        cursor.execute((_EXPLAIN + text).encode(), prepare=False)
        row = cursor.fetchone()
    except (psycopg.Error, CallFailed):
        return None
    identity: int | None = row[0][0].get("Query Identifier") if row else None
    return identity

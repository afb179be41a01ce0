"""A user's SELECT over the tables of runs and profiles, executed by DuckDB.

DuckDB opens no file: it ignores the checksums of Parquet's pages, which the reader of records verifies. DuckDB's own
parser reads the statement, and anything but one SELECT over the tables is refused before it runs. In addition, the
connection has no access beyond its memory and its spill folder.
"""

import json
import re
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import duckdb
import pyarrow as pa

from stallmark.errors import StallmarkError, as_reason
from stallmark.processes import temporary_name
from stallmark.record.reader import Record
from stallmark.record.schema import ROWS_AT_ONCE, STEPS
from stallmark.record.table_folder import TableFolder, by_name
from stallmark.stopping import hearing

T = TypeVar("T")

RUN = "run"
MEMORY = "512MiB"
"""Memory of DuckDB, which takes 80 % of the machine's by default; what needs more is spilled."""
NODES = frozenset(("SELECT_NODE", "SET_OPERATION_NODE", "CTE_NODE", "RECURSIVE_CTE_NODE"))
"""The kinds of statements inside a SELECT that change nothing: a DELETE may be in its WITH."""
TABLE_FUNCTIONS = frozenset(("generate_series", "range", "unnest"))
"""The functions that are allowed as tables. Others read files, run text as SQL, or change DuckDB itself."""
INTERRUPTED_WITHIN_S = 5.0


class Answer(NamedTuple):
    """The columns of an answer, and its rows."""

    columns: Sequence[str]
    rows: Iterator[tuple[Any, ...]]


class RunTable:
    """A table of several records for DuckDB, which requests a stream at each scan. One batch of rows is in memory at a
    time."""

    def __init__(self, name: str, runs: Mapping[str, TableFolder]):
        self._name, self._runs = name, runs
        self.error: Exception | None = None
        """The error that ended a scan: DuckDB reports it without its type."""
        schemas = [pa.schema(map(_plain, record.schema(name))) for record in runs.values()]
        try:
            columns = pa.unify_schemas(schemas, promote_options="permissive")
        except pa.ArrowException as error:
            reason = as_reason(str(error).splitlines()[0])
            raise StallmarkError(
                f"The records have tables {name} that do not fit together ({reason}): ask each record by itself."
            ) from None
        self.schema = pa.schema([pa.field(RUN, pa.string()), *(field for field in columns if field.name != RUN)])

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        return pa.RecordBatchReader.from_batches(self.schema, self._batches()).__arrow_c_stream__(requested_schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        try:
            for run, record in self._runs.items():
                for batch in record.batches(self._name, self.schema.names):
                    arrays = [_column(batch, field, run) for field in self.schema]
                    yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        except Exception as error:
            self.error = error
            raise


def _plain(field: pa.Field) -> pa.Field:
    """Return a column without its metadata, in which versions of Stallmark differ, and without a dictionary."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return pa.field(field.name, kind)


def _column(batch: pa.RecordBatch, field: pa.Field, run: str) -> pa.Array:
    if field.name == RUN:
        return pa.repeat(pa.scalar(run, pa.string()), batch.num_rows)
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    return batch.column(field.name).cast(field.type)


@contextmanager
def answer(records: Sequence[TableFolder], statement: str) -> Iterator[Answer]:
    """Yield the answer to a SELECT over the tables of the records. Raise StallmarkError for anything else, and for a
    table that is not as it was written."""
    runs = by_name(records)
    by_table: dict[str, dict[str, TableFolder]] = {}
    for run, record in runs.items():
        for name in record.tables():
            by_table.setdefault(name, {})[run] = record
    tables = {name: RunTable(name, having) for name, having in by_table.items()}
    with (
        tempfile.TemporaryDirectory(prefix=temporary_name("sql"), ignore_cleanup_errors=True) as folder,
        closing(_connected(Path(folder))) as connection,
    ):
        for name, table in tables.items():
            connection.register(name, table)
        connection.register("steps", _steps(runs))
        try:
            select = _only_select(connection, statement)
            _interruptible(connection, lambda: connection.execute(select))
            yield Answer([column[0] for column in connection.description], _rows(connection))
        except duckdb.Error as error:
            # The error of a scan names the damaged file; DuckDB only reports that the scan failed.
            for table in tables.values():
                if table.error:
                    raise table.error from None
            raise _refusal(error, [*tables, "steps"]) from None


def _connected(folder: Path) -> duckdb.DuckDBPyConnection:
    """Return a DuckDB in memory that spills to `folder` and can reach nothing else. It has one thread: with two the
    last digits of a sum depend on chance."""
    connection = duckdb.connect(
        config={
            "threads": 1,
            "memory_limit": MEMORY,
            "temp_directory": str(folder),
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "allow_community_extensions": False,
            "allow_persistent_secrets": False,
            "error_on_division_by_zero": False,  # a mean of nothing is missing
            "python_enable_replacements": False,  # variables of this process as tables
        }
    )
    connection.execute("SET TimeZone = 'UTC'")  # the machine's by default
    # Set last, as neither can be undone: the statement cannot change them again.
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def _steps(runs: Mapping[str, TableFolder]) -> pa.Table:
    """Return the steps of the runs, with the interval that each was measured in."""
    rows = [
        {
            RUN: run,
            "variant": record.manifest.variant.name,
            "repeat": record.manifest.repeat,
            "step": step.name,
            "users": step.users,
            "measure_s": step.measure_s,
            "end_s": step.end_s,
        }
        for run, record in runs.items()
        if isinstance(record, Record)  # a profile has no steps
        for step in record.manifest.steps
    ]
    return pa.Table.from_pylist(rows, STEPS)


def _only_select(connection: duckdb.DuckDBPyConnection, text: str) -> duckdb.Statement:
    """Return the SELECT in a text. Raise StallmarkError for anything but one SELECT over tables, duckdb.Error for
    what is not SQL."""
    statements = connection.extract_statements(text)
    # Refused before it runs: DuckDB would execute every statement of the text.
    if [statement.type.name for statement in statements] != ["SELECT"]:
        raise _not_answered([_verb(statement) for statement in statements])
    [[serialized]] = connection.execute("SELECT json_serialize_sql(?)", [text]).fetchall()
    tree = json.loads(serialized)
    if tree["error"]:
        raise StallmarkError(f"The statement is not answered: {as_reason(tree.get('error_message'))}.")
    parts = list(_parts(tree))
    inside = {part["type"] for part in parts if str(part.get("type")).endswith("_NODE")}
    if changing := sorted(inside - NODES):
        raise _not_answered([kind.partition("_")[0] for kind in changing])
    functions = {part["function"]["function_name"].lower() for part in parts if part.get("type") == "TABLE_FUNCTION"}
    if others := sorted(functions - TABLE_FUNCTIONS):
        raise StallmarkError(
            f"A SELECT reads the tables of the records, and not {others[0]}(): name one of these tables in its place."
        )
    return statements[0]


def _verb(statement: duckdb.Statement) -> str:
    """Return the verb of a statement. DuckDB has one kind for several, such as LOAD for INSTALL."""
    kind, word = statement.type.name, re.split(r"\W", statement.query, maxsplit=1)[0].upper()
    return kind if kind == "SELECT" or word in ("WITH", "") else word


def _not_answered(kinds: Sequence[str]) -> StallmarkError:
    return StallmarkError(
        f"Only one SELECT is answered, not {', '.join(kinds) or 'an empty text'}: write a SELECT over the tables of "
        "the records."
    )


def _parts(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield the parts of a statement, however deep."""
    if isinstance(tree, dict):
        yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for part in tree:
            yield from _parts(part)


def _rows(connection: duckdb.DuckDBPyConnection) -> Iterator[tuple[Any, ...]]:
    while rows := _interruptible(connection, lambda: connection.fetchmany(ROWS_AT_ONCE)):
        yield from rows


def _interruptible(connection: duckdb.DuckDBPyConnection, call: Callable[[], T]) -> T:
    """Return the result of a call of DuckDB. A signal to stop interrupts the call, and is raised."""
    ended = threading.Event()

    def work() -> T:
        try:
            return call()
        finally:
            ended.set()

    try:
        return hearing(work)
    except KeyboardInterrupt:
        # Otherwise DuckDB would continue in its thread and use the tables after they are closed.
        connection.interrupt()
        ended.wait(INTERRUPTED_WITHIN_S)
        raise


def _refusal(error: duckdb.Error, tables: Sequence[str]) -> StallmarkError:
    """Return DuckDB's error as a sentence, with the place in the statement that it points to."""
    text = str(error)
    if missing := re.search(r'Table with name "?([^"\n]+?)"? does not exist', text):
        return StallmarkError(f"The records have no table {missing[1]}: choose one of {', '.join(sorted(tables))}.")
    place = re.search(r"^(LINE (\d+): .*)\n( *)\^", text, re.MULTILINE)
    reason = re.sub(r"^[\w ]+ Error: ", "", text[: place.start()] if place else text)
    where = f" (line {place[2]}, at “{place[1][len(place[3]) :].strip()}”)" if place else ""
    return StallmarkError(f"The statement is not answered: {as_reason(' '.join(reason.split()))}{where}.")

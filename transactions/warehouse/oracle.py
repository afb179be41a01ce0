"""An independent answer to each query, from DuckDB on the generator's data, and when two answers are the same."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from types import TracebackType
from typing import Any

import duckdb

from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.processes import run_guarded, temporary_name
from stallmark.schema import warehouse
from stallmark.schema.warehouse.tables import METADATA
from stallmark.transactions.warehouse import QUERIES, text, validation
from stallmark.transactions.warehouse.refresh import Refresh

# The rule by which two answers to a query are the same: TPC-H 2.1.3.5, which leaves room for how engines round.

Rows = Sequence[Sequence[Any]]

# The kind of each column of an answer: x for what must be the same (columns, counts, and sums of quantities), s for a
# sum of money, a for an average or a ratio.
COLUMNS: Mapping[int, str] = {
    1: "xxxsssaaax",
    2: "xxxxxxxx",
    3: "xsxx",
    4: "xx",
    5: "xs",
    6: "s",
    7: "xxxs",
    8: "xa",
    9: "xxs",
    10: "xxsxxxxx",
    11: "xs",
    12: "xxx",
    13: "xx",
    14: "a",
    15: "xxxxs",
    16: "xxxx",
    17: "a",
    18: "xxxxxx",
    19: "s",
    20: "xx",
    21: "xx",
    22: "xxs",
}

# The column, from 0, by which a query orders its answer first.
ORDERED_BY: Mapping[int, int] = {
    1: 0, 2: 0, 3: 1, 4: 0, 5: 1, 7: 0, 8: 0, 9: 0, 10: 2, 11: 1, 12: 0, 13: 1, 15: 0, 16: 3, 18: 4, 20: 0, 21: 1,
    22: 0,
}  # fmt: skip

VALIDATION_ROWS: Mapping[int, int] = {
    1: 4, 2: 100, 3: 10, 4: 5, 5: 5, 6: 1, 7: 4, 8: 2, 9: 175, 10: 20, 11: 1048, 12: 2, 13: 42, 14: 1, 15: 1,
    16: 18314, 17: 1, 18: 57, 19: 1, 20: 186, 21: 100, 22: 7,
}  # fmt: skip
"""The number of rows that answer each query at scale factor 1, as loaded, with the validation parameters."""

MONEY = Decimal(100)
SHOWN = 3


def differences(query: int, ours: Rows, theirs: Rows) -> list[str]:
    """Return the differences as sentences without their full stop, `ours` first; an empty list where the answers are
    the same.

    Rows are matched by the values that must be exactly equal, then compared value by value. Only the first column of
    the order counts: behind that it depends on a server's collation.
    """
    columns = COLUMNS[query]
    if wide := {len(row) for rows in (ours, theirs) for row in rows} - {len(columns)}:
        return [f"rows have {wide.pop()} columns, and not {len(columns)}"]
    mine, other = ([tuple(map(_plain, row)) for row in rows] for rows in (ours, theirs))
    differences_found = [] if len(mine) == len(other) else [f"there are {len(mine)} rows, and not {len(other)}"]
    keys, others = Counter(_key(columns, row) for row in mine), Counter(_key(columns, row) for row in other)
    differences_found += [f"{_format_row(key)} is too much" for key in list(keys - others)[:SHOWN]]
    differences_found += [f"{_format_row(key)} is missing" for key in list(others - keys)[:SHOWN]]
    if differences_found:
        return differences_found
    by_key = {_key(columns, row): row for row in other}
    for row in mine:
        expected = by_key[_key(columns, row)]
        differences_found += [
            f"column {number} of {_format_row(row)} is {value}, and not {wanted}"
            for number, (kind, value, wanted) in enumerate(zip(columns, row, expected, strict=True), 1)
            if not _same(kind, value, wanted)
        ]
    if (first := ORDERED_BY.get(query)) is not None:
        pairs = zip(mine, other, strict=True)
        if any(not _same(columns[first], row[first], expected[first]) for row, expected in pairs):
            differences_found.append(f"the rows are in another order, which is first by column {first + 1}")
    return differences_found


def _key(columns: str, row: tuple) -> tuple:
    return tuple(value for kind, value in zip(columns, row, strict=True) if kind == "x")


def _plain(value: Any) -> Any:
    """Return a value without the blanks that fill a `char`; a binary fraction as the decimal that it is shown as."""
    if isinstance(value, str):
        return value.rstrip()
    return Decimal(repr(value)) if isinstance(value, float) else value


def _same(kind: str, value: Any, wanted: Any) -> bool:
    if kind == "x" or value is None or wanted is None:
        return value == wanted
    if kind == "s":
        return abs(value - wanted) <= MONEY
    # The rule compares two decimals; on the edge between two of them the values themselves are as near.
    return _is_within_a_percent(_cents(value), _cents(wanted)) or _is_within_a_percent(value, wanted)


def _is_within_a_percent(value: Decimal, wanted: Decimal) -> bool:
    return abs(value - wanted) * 100 <= abs(wanted)


def _cents(value: Any) -> Decimal:
    return Decimal(value).quantize(Decimal("0.01"), ROUND_HALF_UP)


def _format_row(row: Sequence[Any]) -> str:
    return "(" + ", ".join(map(str, row)) + ")"


# An independent answer to each query: DuckDB on the generator's data, not on what a server holds.
#
# DuckDB executes the text that PostgreSQL gets. What refresh sets have changed, it changes too, from the same
# pure functions.


class Oracle:
    """The warehouse in DuckDB; while it is open its data take about 350 MB of disk for each 1 of the scale factor.

    `inserted` and `deleted` are the numbers of refresh sets whose RF1 and RF2 were executed. Raise StallmarkError if
    the generator is not installed, or if it or DuckDB fails, as on a full disk.
    """

    def __init__(self, factor: float, inserted: int = 0, deleted: int = 0):
        self._factor = factor
        self._changes = inserted, deleted

    def __enter__(self) -> "Oracle":
        self._folder = Path(tempfile.mkdtemp(prefix=temporary_name("oracle")))
        try:
            _generate(self._factor, self._folder)
            self._connection = duckdb.connect(self._folder / "oracle.duckdb")
            with self._reporting("the data in the generator's files"):
                self._fill()
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def answers(self, query: int, parameters: Mapping[str, str]) -> list[tuple]:
        """Return the rows of a query, in order. Raise StallmarkError."""
        with self._reporting(f"the answer to q{query}"):
            return self._connection.execute(text(query, "postgresql", parameters)).fetchall()

    @contextmanager
    def _reporting(self, action: str) -> Iterator[None]:
        """Raise DuckDB's errors as StallmarkError."""
        try:
            yield
        except duckdb.Error as error:
            raise StallmarkError(f"DuckDB did not find {action}: {str(error).splitlines()[0].rstrip('.')}.") from None

    def _fill(self) -> None:
        execute = self._connection.execute
        execute(f"SET temp_directory = '{self._folder}'")
        execute("CREATE SCHEMA warehouse")
        generated = {
            table.name: f"read_parquet('{self._folder / table.name}.parquet')"
            for table in METADATA.sorted_tables
            if table.name != "refresh"
        }
        changed = {"orders": "o_orderkey", "lineitem": "l_orderkey"} if any(self._changes) else {}
        for name in generated.keys() - changed.keys():
            execute(f"CREATE VIEW warehouse.{name} AS SELECT * FROM {generated[name]}")
        if changed:
            self._refresh(generated)
        for name, key in changed.items():
            execute(
                f"CREATE VIEW warehouse.{name} AS SELECT * FROM "
                f"(SELECT * FROM {generated[name]} UNION ALL BY NAME SELECT * FROM inserted_{name}) AS rows "
                f"WHERE NOT EXISTS (SELECT 1 FROM deleted WHERE deleted.key = rows.{key})"
            )

    def _refresh(self, generated: Mapping[str, str]) -> None:
        inserted, deleted = self._changes
        for name in ("orders", "lineitem"):
            self._connection.execute(f"CREATE TABLE inserted_{name} AS SELECT * FROM {generated[name]} LIMIT 0")
        self._connection.execute("CREATE TABLE deleted (key bigint)")
        for number in range(1, inserted + 1):
            tables = zip(("orders", "lineitem"), warehouse.inserts(self._factor, number), strict=True)
            for name, rows in tables:
                self._connection.register("new", rows)
                self._connection.execute(f"INSERT INTO inserted_{name} BY NAME SELECT * FROM new")
                self._connection.unregister("new")
        for number in range(1, deleted + 1):
            keys = warehouse.deletes(self._factor, number)
            self._connection.execute("INSERT INTO deleted SELECT unnest($1)", [keys.tolist()])


def validate(engine: Engine, factor: float) -> Iterator[tuple[int, list[str]]]:
    """Yield each query with the differences between a server's answer to its validation parameters and the oracle's.
    These are sentences without their full stop; none where the answer is right.

    Raises StallmarkError as `Oracle` does, and CallFailed or the errors of the server where it does not answer.
    """
    state = Refresh(engine, factor).state()
    deleted = state.set if state.deleted else state.set - 1
    with Oracle(factor, state.set, deleted) as oracle:
        for query in QUERIES:
            parameters = validation(query, factor)
            ours = engine.query(text(query, engine.dialect, parameters))
            differing = differences(query, ours, oracle.answers(query, parameters))
            if factor == 1 and state.set == 0 and len(ours) != (known := VALIDATION_ROWS[query]):
                differing.insert(0, f"{len(ours):,} rows answer it, and {known:,} are known to be right")
            yield query, differing


def _generate(factor: float, folder: Path) -> None:
    """Write a Parquet file for each table. Raise StallmarkError when the generator is missing or fails."""
    if not (program := warehouse.find_generator()):
        raise StallmarkError(
            f"{warehouse.GENERATOR} is not installed, which makes the data: pip install 'stallmark[warehouse]'."
        )
    done = run_guarded("generator", [program, "parquet", f"--scale-factor={factor:g}", f"--output-dir={folder}"])
    if done.returncode:
        message = (done.stderr.strip().splitlines() or ["it did not say why"])[-1]
        raise StallmarkError(f"{warehouse.GENERATOR} could not write the warehouse's tables into {folder}: {message}.")

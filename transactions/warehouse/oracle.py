"""An independent answer to each query: DuckDB on the generator's data, not on what a server holds.

DuckDB executes the text that PostgreSQL gets. What refresh sets have changed, it changes too, from the same
pure functions.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import duckdb

from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.leftovers import own_name
from stallmark.schema.warehouse import refresh as warehouse_refresh
from stallmark.schema.warehouse import scale
from stallmark.schema.warehouse.tables import METADATA
from stallmark.transactions.warehouse.answers import VALIDATION_ROWS, differences
from stallmark.transactions.warehouse.parameters import validation
from stallmark.transactions.warehouse.queries import QUERIES, text
from stallmark.transactions.warehouse.refresh import Refresh


class Oracle:
    """The warehouse in DuckDB; while it is open its data take about 350 MB of disk for each 1 of the scale factor.

    `inserted` and `deleted`: how many refresh sets had their RF1 and their RF2. Raises StallmarkError where the
    generator is not installed, or one of them fails, as on a disk that is too small.
    """

    def __init__(self, factor: float, inserted: int = 0, deleted: int = 0, folder: Path | None = None):
        """Take in `folder` where the data go; by default the folder for temporary files."""
        self._factor = factor
        self._changes = inserted, deleted
        self._within = folder

    def __enter__(self) -> "Oracle":
        self._folder = Path(tempfile.mkdtemp(prefix=own_name("oracle"), dir=self._within))
        try:
            _generate(self._factor, self._folder)
            self._connection = duckdb.connect(self._folder / "oracle.duckdb")
            with self._said("the data in the generator's files"):
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
        with self._said(f"the answer to q{query}"):
            return self._connection.execute(text(query, "postgresql", parameters)).fetchall()

    @contextmanager
    def _said(self, what: str) -> Iterator[None]:
        """Raise DuckDB's errors as StallmarkError."""
        try:
            yield
        except duckdb.Error as error:
            raise StallmarkError(f"DuckDB did not find {what}: {str(error).splitlines()[0].rstrip('.')}.") from None

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
            tables = zip(("orders", "lineitem"), warehouse_refresh.inserts(self._factor, number), strict=True)
            for name, rows in tables:
                self._connection.register("new", rows)
                self._connection.execute(f"INSERT INTO inserted_{name} BY NAME SELECT * FROM new")
                self._connection.unregister("new")
        for number in range(1, deleted + 1):
            keys = warehouse_refresh.deletes(self._factor, number)
            self._connection.execute("INSERT INTO deleted SELECT unnest($1)", [keys.tolist()])


def validate(engine: Engine, factor: float, folder: Path | None = None) -> Iterator[tuple[int, list[str]]]:
    """Yield each query with the differences between a server's answer to its validation parameters and the oracle's.
    These are sentences without their full stop; none where the answer is right.

    Raises StallmarkError as `Oracle` does, and CallFailed or the errors of the server where it does not answer.
    """
    state = Refresh(engine, factor).state()
    deleted = state.set if state.deleted else state.set - 1
    with Oracle(factor, state.set, deleted, folder) as oracle:
        for query in QUERIES:
            parameters = validation(query, factor)
            ours = engine.query(text(query, engine.dialect, parameters))
            found = differences(query, ours, oracle.answers(query, parameters))
            if factor == 1 and state.set == 0 and len(ours) != (known := VALIDATION_ROWS[query]):
                found.insert(0, f"{len(ours):,} rows answer it, and {known:,} are known to be right")
            yield query, found


def _generate(factor: float, folder: Path) -> None:
    """Write a Parquet file for each table. Raise StallmarkError when the generator is missing or fails."""
    if not (program := scale.find_generator()):
        raise StallmarkError(
            f"{scale.GENERATOR} is not installed, which makes the data: pip install 'stallmark[warehouse]'."
        )
    done = subprocess.run(
        [program, "parquet", f"--scale-factor={factor:g}", f"--output-dir={folder}"], capture_output=True, text=True
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it did not say why"])[-1]
        raise StallmarkError(f"{scale.GENERATOR} could not write the warehouse's tables into {folder}: {said}.")

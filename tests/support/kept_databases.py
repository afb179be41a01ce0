"""Built databases that tests may change: brought back to what was built before a test process uses them again.

They stay, one for each test process that runs at a time, until the code that builds them changes: the embedded ones in
a folder for temporary files, the others on their server. An embedded one is built once; each process has a copy.
One that a killed process had is not used again: more than its rows may be different.
"""

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

import stallmark
from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.loaders.load import build
from stallmark.transactions.workload import Background, UserLoad, Workload
from support import sql_server

KEPT = "kept"
"""The schema with a copy of each table as it was built."""

_PROCEDURES = {
    "postgresql": "SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace",
    "mssql": "SELECT '{schema}.' + name FROM sys.procedures WHERE schema_id = SCHEMA_ID('{schema}')",
}
_KIND = {"postgresql": "FUNCTION", "mssql": "PROCEDURE"}


def kept_engine(workload: Workload, scale: Mapping, seed: int) -> Any:
    """Make the fixture `engine`: the database as it was built. What one test changes the next finds."""

    @pytest.fixture(
        scope="session", name="engine", params=["embedded", pytest.param("sqlserver", marks=pytest.mark.sqlserver)]
    )
    def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
        server = MssqlEngine(sql_server.URL) if request.param == "sqlserver" else None
        with kept_database(server, workload, scale, seed) as engine:
            yield engine

    return engine


@contextmanager
def kept_database(server: MssqlEngine | None, workload: Workload, scale: Mapping, seed: int) -> Iterator[Engine]:
    """Without procedures. `server`: beside the database it names; None: embedded."""
    where = "embedded" if server is None else hashlib.sha256(server.location.encode()).hexdigest()[:8]
    with _place(server, f"{workload.name}_{where}", _key(workload, scale, seed)) as place:
        built = place / "built"
        is_new = not built.exists()
        if is_new and not server:
            _copy_of_one(place, workload, scale, seed)
        built.unlink(missing_ok=True)  # until the tests have ended
        engine = server.on_database(_database(server, place)) if server else _embedded(place)
        try:
            if not is_new:
                drop_procedures(engine, workload.schema)
                bring_back(engine, workload.metadata)
            elif server:
                _make(engine, workload, scale, seed)
            yield engine
        finally:
            engine.close()
        built.touch()


def _embedded(place: Path) -> EmbeddedEngine:
    server = EmbeddedServer(place / "server")
    server.settings = {"synchronous_commit": "off"}  # thousands of commits, none of which is to last
    return EmbeddedEngine(server, "kept")


def _copy_of_one(place: Path, workload: Workload, scale: Mapping, seed: int) -> None:
    """Of the one that the first process has built, which nobody works on."""
    one = place.with_name(f"{place.name.rpartition('_')[0]}_as_built")
    with _alone(one, wait=True):
        if not (one / "built").exists():
            _drop(None, one)
            engine = _embedded(one)
            try:
                _make(engine, workload, scale, seed)
            finally:
                engine.close()
            (one / "built").touch()
        shutil.copytree(one / "server", place / "server", symlinks=True)


def drop_procedures(engine: Engine, schema: str) -> None:
    """Those of another version are not just replaced: PostgreSQL replaces no function by one that returns other
    columns."""
    for (procedure,) in engine.query(_PROCEDURES[engine.dialect].format(schema=schema)):
        engine.execute(f"DROP {_KIND[engine.dialect]} {procedure}")


def bring_back(engine: Engine, metadata: sa.MetaData) -> None:
    """Undo what was done to the rows of all tables."""
    with engine.cursor() as cursor:
        changes = {table: _changes(cursor, table) for table in metadata.sorted_tables}
        for table, (more, _, _) in reversed(changes.items()):
            if more:
                cursor.execute(
                    f"DELETE FROM {table.fullname} WHERE NOT EXISTS "
                    f"(SELECT 1 FROM {_kept(table)} AS k WHERE {_same_key(table)})"
                )
        for table, (_, fewer, others) in changes.items():
            if others:
                cursor.execute(
                    f"UPDATE {table.fullname} SET {', '.join(f'{one.name} = k.{one.name}' for one in _others(table))} "
                    f"FROM {_kept(table)} AS k "
                    f"WHERE {_same_key(table)} AND ({' OR '.join(map(_differs, _others(table)))})"
                )
            if fewer:
                names = ", ".join(column.name for column in table.columns)
                cursor.execute(
                    f"INSERT INTO {table.fullname} ({names}) SELECT {names} FROM {_kept(table)} AS k "
                    f"WHERE NOT EXISTS (SELECT 1 FROM {table.fullname} WHERE {_same_key(table)})"
                )


def _changes(cursor: Any, table: sa.Table) -> Sequence[int]:
    """How many rows are there that were not built, how many are gone, and how many of the others are not as built."""
    key = next(iter(table.primary_key)).name
    differs = " OR ".join(map(_differs, _others(table))) or "1 = 0"
    wrong = (f"k.{key} IS NULL", f"{table.fullname}.{key} IS NULL", differs)
    counts = ", ".join(f"COUNT(CASE WHEN {one} THEN 1 END)" for one in wrong)
    cursor.execute(f"SELECT {counts} FROM {table.fullname} FULL JOIN {_kept(table)} AS k ON {_same_key(table)}")
    return cursor.fetchone()


def _others(table: sa.Table) -> list[sa.Column]:
    return [column for column in table.columns if not column.primary_key]


def _kept(table: sa.Table) -> str:
    """Of another name: Babelfish tells the tables of a statement apart by that alone."""
    return f"{KEPT}.kept_{table.name}"


def _same_key(table: sa.Table) -> str:
    return " AND ".join(f"{table.fullname}.{key.name} = k.{key.name}" for key in table.primary_key)


def _differs(column: sa.Column) -> str:
    now, then = f"{column.table.fullname}.{column.name}", f"k.{column.name}"
    differs = f"{now} <> {then}"
    if column.nullable:
        differs += f" OR {now} IS NULL AND {then} IS NOT NULL OR {now} IS NOT NULL AND {then} IS NULL"
    return differs


def _make(engine: Engine, workload: Workload, scale: Mapping, seed: int) -> None:
    bare = replace(workload, users=UserLoad(), background=Background())
    build(engine, bare, scale, seed, workers=2)
    engine.execute(f"CREATE SCHEMA {KEPT}")
    for table in workload.metadata.sorted_tables:
        engine.execute(f"SELECT * INTO {_kept(table)} FROM {table.fullname}")
        engine.settle(_kept(table))


def _key(workload: Workload, scale: Mapping, seed: int) -> str:
    """Of what decides which rows are built."""
    digest = hashlib.sha256(json.dumps([workload.version, dict(scale), seed]).encode())
    package = Path(stallmark.__file__).parent
    for file in [Path(__file__), *(f for room in ("loaders", "schema") for f in _code(package / room))]:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:8]


def _code(room: Path) -> list[Path]:
    return sorted(file for file in room.rglob("*") if file.suffix in (".py", ".sql"))


@contextmanager
def _place(server: MssqlEngine | None, name: str, key: str) -> Iterator[Path]:
    """The first of the folders for such databases that no other process is in; what is not built there, or was not left
    in order, is empty."""
    folder = Path(tempfile.gettempdir()) / f"stallmark-tests-{os.getuid()}"
    for number in count(1):
        place = folder / f"{name}_{key}_{number}"
        with suppress(BlockingIOError), _alone(place):
            if not (place / "built").exists():
                _sweep(server, folder, name, key)
                _drop(server, place)
                if server:
                    server.on_database("master").execute(f"CREATE DATABASE [{_database(server, place)}]")
            yield place
            return


@contextmanager
def _alone(place: Path, wait: bool = False) -> Iterator[None]:
    """Make the folder, and be the only process in it. BlockingIOError: another one is, and we are not to wait."""
    with ExitStack() as held:
        is_ours = False
        while not is_ours:
            with suppress(FileNotFoundError, FileExistsError):  # swept away by a process with other code
                place.mkdir(parents=True, exist_ok=True)
                lock = held.enter_context((place / "in-use").open("w"))
                fcntl.flock(lock, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
                is_ours = os.path.samestat(os.fstat(lock.fileno()), (place / "in-use").stat())
        yield


def _sweep(server: MssqlEngine | None, folder: Path, name: str, key: str) -> None:
    """Drop what earlier code has built, where no process is at work. Another one may come while we leave."""
    for place in folder.glob(f"{name}_*"):
        if not place.name.startswith(f"{name}_{key}_"):
            with suppress(BlockingIOError), _alone(place):
                _drop(server, place)
                (place / "built").unlink(missing_ok=True)
                (place / "in-use").unlink()
            with suppress(OSError):
                place.rmdir()


def _drop(server: MssqlEngine | None, place: Path) -> None:
    if server:
        server.on_database("master").execute(f"DROP DATABASE IF EXISTS [{_database(server, place)}]")
    else:
        shutil.rmtree(place / "server", ignore_errors=True)


def _database(server: MssqlEngine, place: Path) -> str:
    return f"{server.address.database}_{place.name}"

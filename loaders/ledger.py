"""Reading and writing what Stallmark notes in a database: its identity, and the batches that are in."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.loaders import Batch
from stallmark.schema import joined, version_of
from stallmark.schema.deploy import DATABASE, LEDGER, connected


@dataclass(frozen=True)
class Identity:
    """The identity of a loaded database: everything that decides its data."""

    workload: str
    version: int
    scale: Mapping[str, Any]
    seed: int
    options: Mapping[str, Any]

    def is_of_another_version(self, wanted: "Identity") -> bool:
        """Return True if name, scale and seed are those of `wanted`, but the version is not."""
        same = all(getattr(self, name) == getattr(wanted, name) for name in ("workload", "scale", "seed"))
        return same and self.version != wanted.version

    def differences(self, wanted: "Identity") -> list[str]:
        """Return the differences from `wanted`, each as "scale is …, asked is …"."""
        return [
            f"its {name} is {_text_of(mine)}, asked is {_text_of(theirs)}"
            for name in ("workload", "version", "scale", "seed", "options")
            if (mine := getattr(self, name)) != (theirs := getattr(wanted, name))
        ]


@dataclass(frozen=True)
class Entry:
    """The row by which a database is recognised: identity, bytes as loaded (None until complete), compression ratio
    (None:
    not known), and use since."""

    identity: Identity
    loaded_bytes: int | None
    compressibility: float | None
    driven: bool

    @property
    def complete(self) -> bool:
        return self.loaded_bytes is not None

    @property
    def label(self) -> str:
        """The unique label of a copy of the database as loaded."""
        return json.dumps(vars(self.identity) | {"loaded_bytes": self.loaded_bytes}, sort_keys=True)


def read(engine: Engine) -> Entry | None:
    """Return the entry of a database; None when Stallmark never built in it.

    Of several databases, return one entry for all; None when one of them has none.
    """
    entries = [_read(database) for database in engine.databases()]
    known = [entry for entry in entries if entry]
    if len(known) < len(entries):
        return None
    return merge_entries(known)


def user_data_entry(workload: str, version: int, size_bytes: int) -> Entry:
    """Return an entry for a user's database, in which nothing is noted."""
    return Entry(Identity(workload, version, {}, 0, {}), size_bytes, None, driven=True)


def is_empty(engine: Engine) -> bool:
    """Return True if Stallmark never built anything in the server's databases."""
    return not any(_read(database) for database in engine.databases())


def _read(engine: Engine) -> Entry | None:
    with connected(engine) as connection:
        look = sa.inspect(connection)
        if not look.has_table(DATABASE.name, DATABASE.schema):
            return None
        columns = {column["name"] for column in look.get_columns(DATABASE.name, DATABASE.schema)}
        if columns != set(DATABASE.columns.keys()):
            raise StallmarkError(
                "The database was built by another version of Stallmark, which noted other things in it: "
                "drop it (the embedded one: remove its folder) and build it again."
            )
        row = connection.execute(sa.select(DATABASE)).one_or_none()
    if row is None:
        return None
    identity = Identity(row.workload, row.version, json.loads(row.scale), row.seed, json.loads(row.options))
    return Entry(identity, row.loaded_bytes, row.compressibility, row.driven)


def merge_entries(entries: Sequence[Entry], *, apart: bool = True) -> Entry:
    """Return one entry for databases of a workload each, or for several workloads in one that is not `apart`. Their
    pages compress as those of the largest do."""
    if len(entries) == 1:
        return entries[0]
    identities = [entry.identity for entry in entries]
    sizes = [entry.loaded_bytes for entry in entries]
    largest = max(entries, key=lambda entry: entry.loaded_bytes or 0)
    return Entry(
        Identity(
            joined([identity.workload for identity in identities], apart=apart),
            version_of([identity.version for identity in identities]),
            {name: value for identity in identities for name, value in identity.scale.items()},
            max(identity.seed for identity in identities),  # 0 where it decides nothing
            {name: value for identity in identities for name, value in identity.options.items()},
        ),
        None if None in sizes else sum(size or 0 for size in sizes),
        largest.compressibility,
        any(entry.driven for entry in entries),
    )


def write(engine: Engine, identity: Identity) -> None:
    with connected(engine) as connection:
        connection.execute(
            sa.insert(DATABASE).values(
                only_row=1,
                workload=identity.workload,
                version=identity.version,
                scale=json.dumps(dict(identity.scale), sort_keys=True),
                seed=identity.seed,
                options=json.dumps(dict(identity.options), sort_keys=True),
                driven=False,
            )
        )


def note_complete(engine: Engine, compressibility: float | None) -> None:
    size = engine.bytes_used()
    with connected(engine) as connection:
        connection.execute(sa.update(DATABASE).values(loaded_bytes=size, compressibility=compressibility))


def note_driven(engine: Engine) -> None:
    """Note that transactions have run: the database is no longer as it was loaded."""
    for database in engine.databases():
        with connected(database) as connection:
            connection.execute(sa.update(DATABASE).values(driven=True))


def batches(engine: Engine) -> dict[Batch, tuple[int, int]]:
    """Return the batches that are in, with their rows and bytes."""
    with connected(engine) as connection:
        if not sa.inspect(connection).has_table(LEDGER.name, LEDGER.schema):
            return {}
        rows = connection.execute(sa.select(LEDGER).where(LEDGER.c.row_count.is_not(None))).all()
    return {Batch(row.table_group, row.batch): (row.row_count, row.byte_count) for row in rows}


def _text_of(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {value[key]}" for key in sorted(value)) or "none"
    return str(value)

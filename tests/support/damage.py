"""Damage to records, at random from a seed, and what the commands that read records then say.

`damage` leaves checksums as they were: a damaged record is a sentence, or gives the same figures. `forge` makes them
anew, as somebody would who wants to do harm, or a Stallmark of another version: it is a sentence, or gives figures.
Neither ever is a traceback, and nothing outside the folder is touched.
"""

import json
import random
import shutil
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.parquet as pq
from click.testing import CliRunner

from stallmark.cli.main import main
from stallmark.record.files import CHECKSUM, checksum
from stallmark.record.table_file import written

FOUND_OUT = 3
"""The exit code of a command that says why it could not do it."""
STRANGE: Sequence[Any] = (
    None, True, -1, 0, 1, 2**31, 2**63 - 1, -(2**63), 10**30, 0.5, -0.0, 1e308, "", "x", "../../x", "\x1b[31m", "a\nb",
    "1e5", "2025-11-21", "2025-11-21T10:01:00", "9999-12-31T23:59:59+14:00", [], {}, [None], [[]], {"a": {}},
    ["a", "a"],
)  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """The result of a command: its exit code, what it printed, and the figures that it wrote."""

    command: str
    code: int
    said: str
    files: tuple[tuple[str, bytes], ...] = ()
    error: BaseException | None = None


def commands(folder: Path) -> list[tuple[str, list[str]]]:
    """Return the commands that read what is in a folder: the one that tells most, then the others."""
    out = folder.parent / "out"
    page = ["--out", f"{out}/r.html"]
    runs, candidate = str(folder), folder / "candidate"
    if candidate.exists():
        size = ["size", str(folder / "profile"), str(candidate), *page]
        report = ["report", str(candidate), *page]
        return [("size --json", [*size, "--json"]), ("size", [*size, "--growth", "1.5"]), ("report", report)]
    if (folder / "profile").exists():
        report = ["report", str(folder / "profile"), *page]
        return [("report --json", [*report, "--json"]), ("report", report)]
    report = ["report", runs, *page]
    cost = "select run, sum(wall_us) as us from collector_cost group by run order by run"
    return [
        ("report --json", [*report, "--json"]),
        ("report", report),
        ("compare", ["compare", runs, "--out", f"{out}/c.html", "--json"]),
        ("export", ["export", runs, "--csv", f"{out}/csv"]),
        ("status", ["status", runs, "--json"]),
        ("sql", ["sql", runs, "--json", cost]),
        ("runs", ["runs", "--out", str(folder.parent), "--json"]),
    ]


def look(folder: Path, rng: random.Random | None = None) -> list[Seen]:
    """Return what the commands do with the records in a folder; with `rng` the first and two of the others."""
    seen, (first, *others) = [], commands(folder)
    for name, words in [first, *(rng.sample(others, min(2, len(others))) if rng else others)]:
        out = folder.parent / "out"
        with patch("stallmark.cli.exit_codes.write_crash_log", _raise):
            done = CliRunner().invoke(main, words)
        csv = tuple((str(path.relative_to(out)), path.read_bytes()) for path in sorted(out.rglob("*.csv")))
        shutil.rmtree(out, ignore_errors=True)
        error = None if isinstance(done.exception, SystemExit) else done.exception
        seen.append(Seen(name, done.exit_code, _without_clock(name, done.output), csv, error))
    return seen


def _raise(error: Exception) -> None:
    raise error


def _without_clock(command: str, said: str) -> str:
    """Return what was printed without what depends on the present time."""
    if command != "status" or not said.startswith("{"):
        return said
    return json.dumps(json.loads(said) | {"silent_s": None, "now": None, "left_s": None})


def faults(before: Sequence[Seen], after: Sequence[Seen], *, forged: bool) -> list[str]:
    """Return what is wrong with what the commands did after the damage."""
    wrong, by_command = [], {seen.command: seen for seen in before}
    for seen in after:
        was = by_command[seen.command]
        if seen.error is not None or seen.code == 70 or "Traceback" in seen.said:
            wrong.append(f"{seen.command}: {seen.error!r} {_where(seen.error)}")
        elif seen.code not in (was.code, FOUND_OUT) and not forged:
            wrong.append(f"{seen.command}: exit code {seen.code}, before {was.code}")
        elif seen.code == 0 and (seen.said, seen.files) != (was.said, was.files) and not forged:
            wrong.append(f"{seen.command}: other figures: {_difference(was, seen)}")
    return wrong


def _where(error: BaseException | None) -> str:
    frames = traceback.extract_tb(error.__traceback__ if error else None)
    return " < ".join(f"{Path(one.filename).name}:{one.lineno} {one.name}" for one in reversed(frames[-7:]))


def _difference(was: Seen, seen: Seen) -> str:
    for before, after in zip(was.said.splitlines(), seen.said.splitlines(), strict=False):
        if before != after:
            return f"{before!r} is {after!r}"
    return f"{[name for name, _ in was.files]} {[name for name, _ in seen.files]}"


def damage(folder: Path, rng: random.Random) -> str:
    """Damage one file, and return how."""
    path = rng.choice(_files(folder))
    how = rng.choice([_flip_a_bit, _flip_a_bit, _flip_a_bit, _overwrite, _cut, _append, _remove, _swap, _value, _table])
    if how in (_value, _table):
        some = [one for one in _files(folder) if one.suffix == (".json" if how is _value else ".parquet")]
        path, how = (rng.choice(some), how) if some else (path, _flip_a_bit)
    return f"{path.relative_to(folder)}: {how(path, rng)}"


def forge(folder: Path, rng: random.Random) -> str:
    """Change a manifest or a table, with checksums that fit, and return how."""
    tables = [path for path in _files(folder) if path.suffix == ".parquet"]
    path = rng.choice(tables if tables and rng.random() < 0.6 else [p for p in _files(folder) if p.suffix == ".json"])
    said = f"{path.relative_to(folder)}: {(_table if path.suffix == '.parquet' else _value)(path, rng)}"
    for manifest in map(path.with_name, ("manifest.json", "profile.json", "sizing.json")):
        if manifest.exists():
            _sign(manifest, path)
    return said


def _sign(manifest: Path, path: Path) -> None:
    found = json.loads(manifest.read_text())
    found.pop(CHECKSUM, None)
    if path.suffix == ".parquet" and isinstance(found.get("tables"), dict) and path.stem in found["tables"]:
        found["tables"][path.stem] = written(path).model_dump()
    manifest.write_text(json.dumps(found | {CHECKSUM: checksum(found)}))


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def _flip_a_bit(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    if not content:
        return "empty as it was"
    place, bit = rng.randrange(len(content)), rng.randrange(8)
    if rng.random() < 0.3:  # where formats keep their own
        place = rng.randrange(max(0, len(content) - 2000), len(content))
    content[place] ^= 1 << bit
    path.write_bytes(content)
    return f"bit {bit} of byte {place} flipped"


def _overwrite(path: Path, rng: random.Random) -> str:
    content = bytearray(path.read_bytes())
    begin = rng.randrange(len(content) + 1)
    length = rng.choice([1, 8, 100, 4096])
    content[begin : begin + length] = rng.choice([bytes(length), rng.randbytes(length)])
    path.write_bytes(content)
    return f"{length} bytes from {begin} on overwritten"


def _cut(path: Path, rng: random.Random) -> str:
    content = path.read_bytes()
    length = rng.choice([0, rng.randrange(len(content) + 1), max(0, len(content) - rng.randrange(1, 30))])
    path.write_bytes(content[:length])
    return f"cut to {length} of {len(content)} bytes"


def _append(path: Path, rng: random.Random) -> str:
    with path.open("ab") as file:
        file.write(added := rng.choice([b"\0", b"\n", rng.randbytes(50), path.read_bytes()]))
    return f"{len(added)} bytes added"


def _remove(path: Path, rng: random.Random) -> str:
    path.unlink()
    return "removed"


def _swap(path: Path, rng: random.Random) -> str:
    others = [one for one in _files(path.parent.parent) if one.suffix == path.suffix and one != path]
    if not others:
        return _flip_a_bit(path, rng)
    shutil.copyfile(other := rng.choice(others), path)
    return f"replaced by {other.name}"


def _value(path: Path, rng: random.Random) -> str:
    """Change one value of a JSON file, or a key."""
    found = json.loads(path.read_text())
    holder, key = rng.choice(list(_places(found)))
    before = holder[key]
    how = rng.choice(["replace", "replace", "nudge", "remove", "add", "copy"])
    if how == "remove":
        del holder[key]
    elif how == "add" and isinstance(holder, dict):
        holder[rng.choice(["x", "../x", "", "format"])] = rng.choice(STRANGE)
    elif how == "copy" and isinstance(before, list) and before:
        before.append(rng.choice(before))
    elif how == "nudge" and isinstance(before, int | float) and not isinstance(before, bool):
        holder[key] = rng.choice([before + 1, -before, before * 1000, before / 3])
    else:
        holder[key] = rng.choice(STRANGE)
    path.write_text(json.dumps(found))
    return f"{key} {how}: {str(before)[:60]!r} is {str(holder[key])[:60]!r}" if how != "remove" else f"{key} removed"


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def _table(path: Path, rng: random.Random) -> str:
    """Change a column of a table, or its rows."""
    table = pq.read_table(path)
    at = rng.randrange(table.num_columns)
    field = table.schema.field(at)
    changes: dict[str, Callable[[], pa.Table]] = {
        "removed": lambda: table.remove_column(at),
        "renamed": lambda: table.rename_columns([n if i != at else f"{n}_" for i, n in enumerate(table.column_names)]),
        "twice": lambda: table.append_column(field, table.column(at)),
        "null": lambda: table.set_column(at, field.name, pa.nulls(table.num_rows, field.type)),
        "of no type": lambda: table.set_column(at, field.name, pa.nulls(table.num_rows)),
        "text": lambda: table.set_column(at, field.name, pa.array(["x"] * table.num_rows, pa.string())),
        "wider": lambda: table.set_column(at, field.name, table.column(at).cast(_wider(field.type))),
        "extreme": lambda: table.set_column(at, field.name, _extreme(table.column(at), rng)),
        "backwards": lambda: table.take(pa.array(range(table.num_rows - 1, -1, -1))),
        "without rows": lambda: table.slice(0, 0),
        "one row": lambda: table.slice(0, 1),
        "twice its rows": lambda: pa.concat_tables([table, table]),
        "without columns": lambda: table.select([]),
    }  # fmt: skip
    how = rng.choice(list(changes))
    try:
        changed = changes[how]()
    except (pa.ArrowException, KeyError):
        how, changed = "removed", changes["removed"]()
    pq.write_table(changed, path)
    return f"{field.name} {how}"


def _wider(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_integer(kind):
        return pa.float64()
    return pa.large_string() if pa.types.is_string(kind) else pa.decimal128(38, 9)


def _extreme(column: pa.ChunkedArray, rng: random.Random) -> pa.Array:
    """Return a column in which some values are as large, or as small, as they can be."""
    kind = column.type
    if pa.types.is_integer(kind):
        values: list[Any] = [-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1, -1, None]
    elif pa.types.is_floating(kind):
        values = [float("nan"), float("inf"), -float("inf"), -1e30, 1e30, None]
    elif pa.types.is_list(kind):
        values = [[], [-1], [32767] * 30, [None], None]
    else:
        values = ["", None, "x" * 10_000]
    rows = column.to_pylist()
    for place in rng.sample(range(len(rows)), min(len(rows), rng.choice([1, 3, len(rows)]))):
        rows[place] = rng.choice(values)
    return pa.array(rows, kind)

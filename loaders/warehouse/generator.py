"""`tpchgen-cli`: where it is, and parts of its tables as files that are gone afterwards."""

import json
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple, TypeVar

import msgspec

from stallmark.errors import StallmarkError, as_reason
from stallmark.processes import hang_up, how_ended, tell
from stallmark.redact import environment
from stallmark.schema.warehouse.scale import GENERATOR, find_generator

VARIED = {
    "supplier": ("s_suppkey", "s_name", "s_address", "s_phone", "s_acctbal", "s_comment"),
    "part": ("p_partkey", "p_name", "p_comment"),
    "partsupp": ("ps_partkey", "ps_suppkey", "ps_supplycost", "ps_comment"),
    "customer": ("c_custkey", "c_name", "c_address", "c_phone", "c_acctbal", "c_comment"),
    "orders": ("o_orderkey", "o_custkey", "o_totalprice", "o_clerk", "o_comment"),
    "lineitem": ("l_orderkey", "l_partkey", "l_suppkey", "l_extendedprice", "l_comment"),
}
"""The columns in which hardly a value repeats, by table: a dictionary of theirs would be larger than they are."""

PART_BYTES = 60_000_000
"""No less than the largest file of a part takes: 52.7 MB, of lineitems."""
AHEAD = 2
"""Parts that lie ready, besides the two that each loader process has."""
LOOK_EVERY_S = 0.01


class Begun(msgspec.Struct):
    """The folder of the files, as the guard reports it."""

    folder: str


class Ended(msgspec.Struct):
    """The end of the generator, as the guard reports it."""

    code: int
    stderr: str


Answer = TypeVar("Answer", Begun, Ended)


class Part(NamedTuple):
    """A part of a table, by its number from 1."""

    table: str
    number: int


def command() -> str:
    """Return the path of the generator. Raise StallmarkError where there is none."""
    path = find_generator()
    if path is None:
        raise StallmarkError(
            f"The warehouse's data comes out of {GENERATOR}, which is not installed: "
            "pip install 'stallmark[warehouse]', then build again."
        )
    return path


@contextmanager
def making(factor: float, wanted: Collection[Part], parts: int, workers: int) -> Iterator[tuple[Path, Iterator[Part]]]:
    """Yield a temporary folder, and the wanted parts of tables in the order in which their files (`file_of`) are there.

    Each table has as many `parts`. The reader of a file removes it: the generator waits as long as there are more than
    `workers` processes can have. The folder is gone when it is left, and when this process is killed: `guard` sees to
    that. The iterator raises StallmarkError with the generator's words.
    """
    order = {"commands": _commands(factor, wanted, parts, workers), "most_bytes": PART_BYTES * (2 * workers + AHEAD)}
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),  # without secrets, which are none of its business
    )
    lines: SimpleQueue[str] = SimpleQueue()
    listener = threading.Thread(target=_listen, args=[guard, lines], daemon=True)
    assert guard.stdin
    with guard:
        listener.start()
        try:
            tell(guard.stdin, json.dumps(order) + "\n")
            folder = Path(_answer(guard, lines, Begun).folder)
            yield folder, _as_they_are_made(guard, lines, folder, set(wanted))
        finally:
            hang_up(guard.stdin)  # which ends it
            listener.join()


def file_of(folder: Path, part: Part) -> Path:
    """Return the Parquet file of a part."""
    return folder / part.table / f"{part.table}.{part.number}.parquet"


def _commands(factor: float, wanted: Collection[Part], parts: int, workers: int) -> list[list[str]]:
    """Return the generator's commands: one for all parts, or one for each number that is wanted.

    A start costs a second of CPU, and a part of all tables at most as much. So a command for all, with a thread for
    each loader process, may be quicker though it makes parts in vain.
    """
    by_number: dict[int, list[str]] = defaultdict(list)
    for part in sorted(wanted):
        by_number[part.number].append(part.table)
    if 2 * len(by_number) * workers >= parts:
        tables = sorted({part.table for part in wanted})
        return [[*_command(factor, parts, tables), f"--num-threads={workers}"]]
    return [
        [*_command(factor, parts, tables), "--num-threads=1", f"--part={number}"]
        for number, tables in by_number.items()
    ]


def _command(factor: float, parts: int, tables: Sequence[str]) -> list[str]:
    order = [command(), "parquet", f"--scale-factor={factor:g}", f"--parts={parts}", "--quiet"]
    # Read once, at once, and gone: not compressed.
    order += [f"--tables={','.join(tables)}", "--compression=UNCOMPRESSED", "--row-group-bytes=64MB"]
    if plain := [f"{column}=PLAIN" for table in tables for column in VARIED.get(table, ())]:
        order.append(f"--column-encoding={','.join(plain)}")
    return order


def _as_they_are_made(
    guard: subprocess.Popen, lines: "SimpleQueue[str]", folder: Path, missing: set[Part]
) -> Iterator[Part]:
    wanted = frozenset(missing)
    while missing:
        has_ended = not lines.empty()
        for file in folder.glob("*/*.parquet"):
            part = Part(file.parent.name, int(file.stem.rpartition(".")[2]))
            if part in missing:
                missing.remove(part)
                yield part
            elif part not in wanted:
                file.unlink()
        if missing and has_ended:
            ended = _answer(guard, lines, Ended)
            said = " ".join(ended.stderr.split()) or f"it {how_ended(ended.code)}"
            raise StallmarkError(f"{GENERATOR} made no {min(missing).table}: {as_reason(said)}.")
        if missing:
            time.sleep(LOOK_EVERY_S)


def _answer(guard: subprocess.Popen, lines: "SimpleQueue[str]", kind: type[Answer]) -> Answer:
    if line := lines.get():
        return msgspec.json.decode(line, type=kind)
    raise StallmarkError(f"The guard of {GENERATOR} {how_ended(guard.wait())}: build again.")


def _listen(guard: subprocess.Popen, lines: "SimpleQueue[str]") -> None:
    assert guard.stdout
    for line in guard.stdout:
        lines.put(line)
    lines.put("")

"""`tpchgen-cli`: where it is, and a part of its tables as files that are gone afterwards."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from stallmark.errors import StallmarkError, as_reason
from stallmark.processes import how_ended
from stallmark.schema.warehouse.generator import NAME, found

VARIED = (
    *("s_suppkey", "s_name", "s_address", "s_phone", "s_acctbal", "s_comment"),
    *("p_partkey", "p_name", "p_comment", "ps_partkey", "ps_suppkey", "ps_supplycost", "ps_comment"),
    *("c_custkey", "c_name", "c_address", "c_phone", "c_acctbal", "c_comment"),
    *("o_orderkey", "o_custkey", "o_totalprice", "o_clerk", "o_comment"),
    *("l_orderkey", "l_partkey", "l_suppkey", "l_extendedprice", "l_comment"),
)


class GeneratorEnd(msgspec.Struct):
    """The end of the generator, as the guard reports it."""

    folder: str
    code: int
    stderr: str


def command() -> str:
    """Return the path of the generator. Raise StallmarkError where there is none."""
    path = found()
    if path is None:
        raise StallmarkError(
            f"The warehouse's data comes out of {NAME}, which is not installed: "
            "pip install 'stallmark[warehouse]', then build again."
        )
    return path


@contextmanager
def generated(factor: float, tables: Sequence[str], part: int, parts: int) -> Iterator[dict[str, Path]]:
    """Yield part number `part` (from 1) of `parts` of each table, as Parquet files in a temporary folder, by table.

    They are gone when it is left, and when this process is killed: `guard` sees to that. One thread makes them; the
    loader has several processes. Raises StallmarkError with the generator's words.
    """
    order = [command(), "parquet", f"--scale-factor={factor:g}", f"--tables={','.join(tables)}"]
    order += [f"--parts={parts}", f"--part={part}", "--num-threads=1", "--quiet"]
    # Read once, at once, and gone: neither compressed, nor with a dictionary of what hardly repeats.
    order += ["--compression=UNCOMPRESSED", "--row-group-bytes=64MB"]
    order += [f"--column-encoding={','.join(f'{column}=PLAIN' for column in VARIED)}"]
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py")), *order],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with guard:  # leaving closes its input, which ends it, and waits for that
        assert guard.stdout
        line = guard.stdout.readline()
        if not line:
            raise StallmarkError(f"The guard of {NAME} {how_ended(guard.wait())}: build again.")
        ended = msgspec.json.decode(line, type=GeneratorEnd)
        if ended.code != 0:
            said = " ".join(ended.stderr.split()) or f"it {how_ended(ended.code)}"
            raise StallmarkError(f"{NAME} made no data: {as_reason(said)}.")
        yield {table: _file(Path(ended.folder), table) for table in tables}


def _file(folder: Path, table: str) -> Path:
    [file] = folder.rglob(f"{table}.*")
    return file

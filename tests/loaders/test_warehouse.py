"""The warehouse's batches: what the generator makes, in the shape of the tables, and nothing left behind."""

import itertools
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections import Counter
from decimal import Decimal
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.kept_databases import KEPT, kept_database
from support.waiting import eventually

from stallmark.errors import StallmarkError
from stallmark.loaders import Batch, LoadPlan, Scale, load, warehouse
from stallmark.loaders.warehouse import LOADER, guard
from stallmark.schema import size
from stallmark.schema.warehouse import FACTORS, GENERATOR, rows
from stallmark.schema.warehouse.tables import METADATA
from stallmark.transactions.workload import Workload

SCALE = {"factor": 0.01}
# As a build sees it: without what users do.
BARE = Workload("warehouse", 1, "warehouse", "stallmark.schema.warehouse.tables", package="")


@pytest.mark.parametrize(
    "scale, said",
    [
        ({}, "not nothing: write `factor: 1`"),
        ({"factor": 2}, "is 0.01, 0.1, 1, 10, 30, 100, 300, 1000, 3000 or 10000 (about 2 GB"),
        ({"factor": True}, "not True"),
        ({"factor": "1"}, "not '1'"),
        ({"factor": 30_000}, "not 30000"),
        ({"warehouses": 4}, "no 'warehouses'"),
    ],
)
def test_scales_that_are_none(scale: dict[str, Any], said: str) -> None:
    with pytest.raises(StallmarkError) as error:
        LOADER.scale(scale)
    assert said in str(error.value)


def test_a_scale_is_one_however_it_is_written() -> None:
    assert json.dumps(LOADER.scale({"factor": 1.0})) == json.dumps(LOADER.scale({"factor": 1}))


@pytest.mark.parametrize("factor", FACTORS)
def test_batches_of_every_size(factor: float) -> None:
    """Between them they have every key once; the largest is no larger than at 1."""
    scale = LOADER.scale({"factor": factor})
    groups = LOADER.groups(scale)
    assert {name.removeprefix("warehouse."): count for name, count in LoadPlan(groups).rows.items()} == rows(factor)
    last = {}
    for group in groups:
        [(table, count)] = group.rows.items()
        assert table == f"warehouse.{group.name}" and count / group.batches <= 800_000
        for number in {0, 1, group.batches // 2, group.batches - 1} & set(range(group.batches)):
            [(of_batch, condition)] = LOADER.rows_of(scale, Batch(group.name, number)).items()
            assert of_batch == table
        if "BETWEEN" in condition:
            last[group.name] = int(LOADER.rows_of(scale, Batch(group.name, group.batches - 1))[table].split()[-1])
    assert last["customer"] == rows(factor)["customer"] and last["supplier"] == rows(factor)["supplier"]
    assert last["partsupp"] == last["part"] == rows(factor)["part"]
    assert last["orders"] == last["lineitem"] == 4 * rows(factor)["orders"]


@pytest.fixture
def seven_parts(monkeypatch: pytest.MonkeyPatch) -> Scale:
    """A scale whose tables are cut into seven parts."""
    monkeypatch.setattr(warehouse, "ORDERS_OF_A_BATCH", 2_200)
    return LOADER.scale(SCALE)


def test_a_batch_holds_the_rows_it_says(seven_parts: Scale) -> None:
    ranges = [LOADER.rows_of(seven_parts, Batch("orders", number))["warehouse.orders"] for number in range(7)]
    edges = [tuple(map(int, text.removeprefix("o_orderkey BETWEEN ").split(" AND "))) for text in ranges]
    assert edges[0][0] == 1 and all(one[1] < two[0] for one, two in itertools.pairwise(edges))
    for table in ("orders", "lineitem"):
        pieces = list(LOADER.batch(1, seven_parts, Batch(table, 6)))
        assert {name for name, _ in pieces} == {f"warehouse.{table}"}
        keys = pa.chunked_array([chunk for _, piece in pieces for chunk in piece[0].chunks], pa.int64())
        assert (pc.min(keys).as_py(), pc.max(keys).as_py()) == edges[6]
        assert len(pc.unique(keys)) == 15_000 - 6 * 2_142


def _orders_of(folder: Path) -> list[list[str]]:
    """Return the tables of each command, and its part, as a generator was told them."""
    return [re.findall(r"--(?:tables|part)=(\S+)", line) for line in (folder / "orders").read_text().splitlines()]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder in which the generator, before it does its work, writes down how it was called."""
    path = warehouse.command()
    spy = tmp_path / GENERATOR
    spy.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/orders\nexec {path} "$@"\n')
    spy.chmod(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    return tmp_path


def test_one_start_serves_all_processes(seven_parts: Scale, told: Path) -> None:
    """Each batch comes once, when its file is there and whole; what is read is gone."""
    batches = LoadPlan(LOADER.groups(seven_parts)).batches()
    found: Counter[str] = Counter()
    with LOADER.supply(seven_parts, batches, 2) as supply:
        [folder] = map(Path, supply.folders.values())
        came = []
        for batch in supply.batches:
            came.append(batch)
            for table, piece in LOADER.supplied(supply.folders, 1, seven_parts, batch):
                found[table.removeprefix("warehouse.")] += piece.num_rows
        assert sorted(came) == sorted(batches) and not list(folder.glob("*/*.parquet"))
    assert found == rows(0.01) and not folder.exists()
    assert len(_orders_of(told)) == 1


@pytest.mark.parametrize(
    ("workers", "orders"), [(1, [["lineitem,orders", "2"], ["part", "5"]]), (2, [["lineitem,orders,part"]])]
)
def test_few_parts_are_made_by_themselves_where_that_is_quicker(
    workers: int, orders: list[list[str]], seven_parts: Scale, told: Path
) -> None:
    """A machine with a share of the batches asks for few, and a load that lacks its last. No other part stays."""
    wanted = [Batch("orders", 1), Batch("lineitem", 1), Batch("part", 4), Batch("refresh", 0)]
    with LOADER.supply(seven_parts, wanted, workers) as supply:
        assert sorted(supply.batches) == sorted(wanted)
        [folder] = map(Path, supply.folders.values())
        assert {file.name for file in folder.glob("*/*.parquet")} >= {"orders.2.parquet", "lineitem.2.parquet"}
    assert _orders_of(told) == orders


def test_the_generator_waits_while_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files that lie there are hardly more than two for each process; then it goes on, also where a batch was
    given up after its first rows, because somebody else has loaded it."""
    monkeypatch.setattr(warehouse, "ORDERS_OF_A_BATCH", 100)
    monkeypatch.setattr(warehouse, "PART_BYTES", 1)
    scale = LOADER.scale(SCALE)
    batches = [Batch(table, number) for table in ("lineitem", "orders") for number in range(150)]
    with LOADER.supply(scale, batches, 1) as supply:
        [folder] = map(Path, supply.folders.values())
        first = next(supply.batches)
        stopped = partial(_is_held_up, GENERATOR)
        eventually(stopped)
        lie_there = sum(1 for _ in folder.glob("*/*.parquet"))
        for batch in chain([first], supply.batches):
            pieces = LOADER.supplied(supply.folders, 1, scale, batch)
            next(pieces)
            del pieces
        assert not list(folder.glob("*/*.parquet"))
    assert lie_there < len(batches)


def _is_held_up(name: str) -> bool:
    family = psutil.Process().children(recursive=True)
    return any(each.name() == name and each.status() == psutil.STATUS_STOPPED for each in family)


def test_a_database() -> None:
    with kept_database(None, BARE, SCALE, 1) as engine:
        for table in METADATA.sorted_tables:
            [(count,)] = engine.query(f"SELECT count(*) FROM {table.fullname}")
            # Others have worked on the tables themselves: what they have deleted may still take room there.
            [(heap,)] = engine.query(f"SELECT pg_relation_size('{KEPT}.kept_{table.name}')")
            assert count == rows(0.01)[table.name]
            if heap > 100 * size.PAGE:
                assert size.table_bytes(table, count, "postgresql") == pytest.approx(heap, rel=0.04), table.name
        assert engine.query("SELECT * FROM warehouse.refresh") == [(0, True, True)]
        first = "SELECT l_partkey, l_extendedprice FROM warehouse.lineitem WHERE l_orderkey = 1 AND l_linenumber = 1"
        assert engine.query(first) == [(1552, Decimal("24710.35"))]
        # The generator has no seed: the database is that of any.
        assert load.recognise(engine, BARE, SCALE, 77).state == "complete"


def test_without_the_generator(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, database) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(StallmarkError, match=r"pip install 'stallmark\[warehouse\]'"):
        load.build(database, BARE, SCALE, 1, workers=1)
    assert load.recognise(database, BARE, SCALE, 1).state == "absent"


def test_a_generator_that_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake = tmp_path / GENERATOR
    fake.write_text("#!/bin/sh\necho 'No space left on device' >&2\nexit 3\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    with pytest.raises(StallmarkError, match="tpchgen-cli made no region: No space left on device"):
        list(LOADER.batch(1, SCALE, Batch("region", 0)))


@pytest.mark.parametrize("victims", [("loader",), ("guard",), ("guard", "loader")])
def test_nothing_is_left_when_one_is_killed(victims: tuple[str, ...], tmp_path: Path) -> None:
    """Not of the files, where the guard lives; in no case the generator, also one that is held up."""
    sleeping = [sys.executable, "-c", "import pathlib, sys, time; f = pathlib.Path(sys.argv[1].split('=')[1], 't'); "
                "f.mkdir(); (f / 't.1.parquet').write_bytes(b'PAR1'); time.sleep(600)"]  # fmt: skip
    code = (
        "import json, subprocess, sys\n"
        f"k = subprocess.Popen([sys.executable, {guard.__file__!r}], stdin=subprocess.PIPE, text=True)\n"
        f"k.stdin.write(json.dumps({{'commands': [{sleeping!r}], 'most_bytes': 4}}) + '\\n')\n"
        "k.stdin.flush()\nk.wait()\ninput()"
    )
    loader = psutil.Popen(
        [sys.executable, "-c", code],
        env=os.environ | {"TMPDIR": str(tmp_path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    try:
        eventually(lambda: any(tmp_path.glob("*/*/*.parquet")))
        [keeping] = loader.children()
        [making] = keeping.children()
        eventually(lambda: making.status() == psutil.STATUS_STOPPED)
        for victim in victims:
            {"guard": keeping, "loader": loader}[victim].kill()
        eventually(lambda: not _lives(making.pid))
        if "guard" not in victims:
            eventually(lambda: not any(tmp_path.iterdir()) and not _lives(keeping.pid))
    finally:
        loader.kill()
        loader.wait()


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False

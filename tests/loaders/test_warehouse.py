"""The warehouse's batches: what the generator makes, in the shape of the tables, and nothing left behind."""

import itertools
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.kept_databases import KEPT, kept_database
from support.waiting import eventually

from stallmark.errors import StallmarkError
from stallmark.loaders import load, warehouse
from stallmark.loaders.plan import Batch, LoadPlan
from stallmark.loaders.warehouse import LOADER, generator, guard
from stallmark.schema import size
from stallmark.schema.warehouse.scale import FACTORS, rows
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
    for group in groups:
        of_batches = [
            LOADER.rows_of(scale, Batch(group.name, number))
            for number in {0, 1, group.batches // 2, group.batches - 1} & set(range(group.batches))
        ]
        assert set(of_batches[0]) == set(group.rows)
        assert all(set(few) <= set(group.rows) for few in of_batches[1:])
        assert max(group.rows.values()) / group.batches <= 1_600_000
    last = {
        table: int(condition.split()[-1])
        for group in groups
        for table, condition in LOADER.rows_of(scale, Batch(group.name, group.batches - 1)).items()
        if "BETWEEN" in condition
    }
    assert last["warehouse.customer"] == rows(factor)["customer"]
    assert last["warehouse.partsupp"] == last["warehouse.part"] == rows(factor)["part"]
    assert last["warehouse.orders"] == last["warehouse.lineitem"] == 4 * rows(factor)["orders"]


def test_a_batch_holds_the_rows_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warehouse, "ORDERS_OF_A_BATCH", 2_200)
    scale = LOADER.scale(SCALE)
    [group] = LOADER.groups(scale)
    assert group.batches == 7
    ranges = [LOADER.rows_of(scale, Batch("all", number))["warehouse.orders"] for number in range(7)]
    edges = [tuple(map(int, text.removeprefix("o_orderkey BETWEEN ").split(" AND "))) for text in ranges]
    assert edges[0][0] == 1 and all(one[1] < two[0] for one, two in itertools.pairwise(edges))
    pieces = list(LOADER.batch(1, scale, Batch("all", 6)))
    keys = pa.chunked_array(
        [
            chunk
            for table, piece in pieces
            if table in ("warehouse.orders", "warehouse.lineitem")
            for chunk in piece[0].chunks
        ],
        pa.int64(),
    )
    assert (pc.min(keys).as_py(), pc.max(keys).as_py()) == edges[6]
    assert len(pc.unique(keys)) == 15_000 - 6 * 2_142


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
    fake = tmp_path / generator.NAME
    fake.write_text("#!/bin/sh\necho 'No space left on device' >&2\nexit 3\n")
    fake.chmod(0o755)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "files"))
    with (
        pytest.raises(StallmarkError, match="tpchgen-cli made no data: No space left on device"),
        generator.generated(0.01, ["region"], 1, 1),
    ):
        pass


def test_nothing_is_left_when_the_loader_is_killed(tmp_path: Path) -> None:
    sleeping = [sys.executable, "-c", "import os, sys, time; print(os.getpid(), flush=True); time.sleep(600)"]
    code = (
        "import subprocess, sys\n"
        f"k = subprocess.Popen([sys.executable, {guard.__file__!r}, *{sleeping!r}], stdin=subprocess.PIPE)\n"
        "print(k.pid, flush=True)\nk.wait()"
    )
    loader = subprocess.Popen(
        [sys.executable, "-c", code], env=os.environ | {"TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, text=True
    )
    assert loader.stdout
    keeping = int(loader.stdout.readline())
    eventually(lambda: any(tmp_path.iterdir()))
    loader.kill()
    loader.wait()
    eventually(lambda: not any(tmp_path.iterdir()) and not _lives(keeping))


def _lives(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except FileNotFoundError:
        return False

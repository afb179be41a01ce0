"""The brokerage on a real server: the same however it was loaded, and what it was said to be."""

import json
from collections.abc import Iterator

import psutil
import pytest
from support.building import loaders_of
from support.canonical import checksums
from support.command_line import stallmark
from support.kept_databases import kept_database

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.errors import StallmarkError
from stallmark.loaders import BatchShare, LoadPlan, ledger
from stallmark.loaders.brokerage import LOADER
from stallmark.loaders.load import BuildProgress, build, recognise
from stallmark.schema.brokerage.tables import METADATA
from stallmark.transactions.brokerage import WORKLOAD

SCALE = LOADER.scale({"customers": 1_000, "days": 0.02})
SEED = 1


@pytest.fixture(scope="module")
def whole() -> Iterator[EmbeddedEngine]:
    """Built in one go, by two workers."""
    with kept_database(None, WORKLOAD, SCALE, SEED) as engine:
        assert isinstance(engine, EmbeddedEngine)
        yield engine


@pytest.fixture(scope="module")
def rows_and_sums(whole) -> dict[str, tuple[int, int]]:
    return checksums(whole, METADATA)


def test_workers_parts_and_a_kill_change_nothing(rows_and_sums, embedded_server: EmbeddedServer):
    engine = EmbeddedEngine(embedded_server, "in_pieces")
    killed: list[psutil.Process] = []

    def kill_loaders(progress: BuildProgress) -> None:
        if progress.rows and not killed:  # one that has done its share may be killed: so all are
            killed.extend(loaders_of(psutil.Process()))
            for loader in killed:
                loader.kill()

    with pytest.raises(StallmarkError, match="killed by signal 9"):
        build(engine, WORKLOAD, SCALE, SEED, workers=3, progress=kill_loaders)
    assert recognise(engine, WORKLOAD, SCALE, SEED).state == "half-loaded"
    build(engine, WORKLOAD, SCALE, SEED, workers=1, part=BatchShare(1, 2))
    continued = build(engine, WORKLOAD, SCALE, SEED, workers=1, part=BatchShare(2, 2))
    assert (continued.outcome, continued.complete) == ("continued", True)
    found = checksums(engine, METADATA)
    assert found == rows_and_sums and len(found) == 33
    assert {table for table, (rows, _) in found.items() if not rows} == {"brokerage.trade_request"}


def test_every_row_is_counted_beforehand_or_nearly(rows_and_sums):
    planned = LoadPlan(LOADER.groups(SCALE)).rows
    found = {table: rows for table, (rows, _) in rows_and_sums.items()}
    by_chance = {"trade_history", "cash_transaction", "holding", "holding_history", "holding_summary",
                 "account_permission", "watch_item"}  # fmt: skip
    for table, rows in planned.items():
        expected = pytest.approx(rows, rel=0.15) if table.removeprefix("brokerage.") in by_chance else rows
        assert found[table] == expected, table


def test_a_batch_is_the_rows_that_its_condition_names(whole):
    """SQL Server's bulk copy relies on it when it clears what a kill has left."""
    for batch, (rows, _) in ledger.batches(whole).items():
        counts = [
            whole.query(f"SELECT COUNT(*) FROM {table} WHERE {condition}")[0][0]
            for table, condition in LOADER.rows_of(SCALE, batch).items()
        ]
        assert sum(counts) == rows, batch


def test_it_is_as_compressible_as_asked_and_says_so(whole):
    entry = ledger.read(whole)
    assert entry and entry.compressibility == pytest.approx(
        SCALE["compressibility"], rel=0.25
    )  # of some pages at random


def test_its_size_is_about_what_was_estimated(whole):
    plan = LoadPlan(LOADER.groups(SCALE))
    sizes = plan.estimate(METADATA, "postgresql")
    entry = ledger.read(whole)
    log = min(sizes.heap_bytes, 4 * 1024**3)  # the estimate holds room for it
    # Of so few days 12 MB are maps of free space, upper levels and what the server needs for itself.
    assert entry and entry.loaded_bytes == pytest.approx(sizes.loaded_bytes - log, rel=0.1, abs=12e6)


def test_another_one_is_refused_with_the_difference(whole):
    with pytest.raises(StallmarkError, match=r"its scale is .*days 0\.02.*asked is .*days 0\.1"):
        recognise(whole, WORKLOAD, LOADER.scale({"customers": 1_000, "days": 0.1}), SEED)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"customers": 1_500}, "by the thousand"),
        ({"customers": 0}, "by the thousand"),
        ({"customers": 5e3}, "by the thousand"),
        ({"days": 0}, "above 0"),
        ({"days": float("nan")}, "above 0"),
        ({"days": 301}, "300 at most"),
        ({"days": 1e-6}, "give no trade"),
        ({"compressibility": 9}, "from 1.3 to 4"),
        ({"branches": 1}, "no 'branches'"),
    ],
)
def test_a_scale_that_cannot_be_is_refused(given, sentence):
    with pytest.raises(StallmarkError, match=sentence):
        LOADER.scale(given)


def test_the_scale_has_defaults():
    assert LOADER.scale({}) == {"customers": 1_000, "days": 10.0, "compressibility": 2.0}
    assert LOADER.scale({"days": 2}) == LOADER.scale({"days": 2.0})


def test_a_build_ends_with_the_depth_of_the_history(whole):
    command = ("build", "brokerage", "--scale", "customers=1000,days=0.02", "--server", whole.spec(), "--shared")
    done = stallmark(*command)
    assert done.exit_code == 0, done.output
    assert "Its history: 0.02 initial trade days (0.230 trades per account)." in " ".join(done.stdout.split())
    found = json.loads(stallmark(*command, "--json").stdout)
    assert found["scale"] == SCALE and found["trades_per_account"] == pytest.approx(0.2304)

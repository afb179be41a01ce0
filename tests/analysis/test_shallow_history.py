"""The caution on a history of trades too short to judge memory or flash by."""

from typing import Any

import pytest
from support.manifests import a_manifest, on
from support.synthetic import EMULATED

from stallmark.analysis.environment_cautions import HistoryKind, shallow_histories
from stallmark.loaders.load import expected_bytes
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.workload import TRADES_PER_ACCOUNT, trade_history
from stallmark.schema.brokerage import ACCOUNTS, TRADES_PER_DAY, Population
from stallmark.stats.thresholds import DEEP_BYTES, DEEP_CUSTOMERS, SHALLOW_DAYS
from stallmark.transactions import find_workload

SHALLOW = {"name": "brokerage", "scale": {"customers": 5_000, "days": 5}}
SMALL, LARGE = ({"variant": {"name": size, "buffer_pool": size}} for size in ("64 MiB", "1 GiB"))
FLASH = {"size": 1 << 26, "read_ms": 0.5, "write_ms": 0.5, "mb_per_s": 400, "channels": 8}
CACHE, TIER = (
    {"devices": on(EMULATED | flash, EMULATED)}
    for flash in ({"cache": FLASH}, {"tier": FLASH | {"cycle_s": 5, "move": 1 << 20}})
)
NO_FLASH = {"devices": on(EMULATED, EMULATED)}


def made(workload: Any, *runs: dict[str, Any]) -> list[Manifest]:
    server = {"product": "PostgreSQL", "version": "18.4"}
    return [a_manifest(**({"workload": workload, "server": server} | run)) for run in runs]


def varied(workload: Any, *runs: dict[str, Any]) -> list[str] | None:
    found = list(shallow_histories(made(workload, *runs)))
    assert len(found) < 2
    return found[0].facts["varied"] if found else None


def test_the_depth_is_that_of_the_data():
    population = Population(2_000, 40)
    assert pytest.approx(population.unit_trades / ACCOUNTS) == TRADES_PER_ACCOUNT * 40
    assert pytest.approx(TRADES_PER_DAY / ACCOUNTS) == TRADES_PER_ACCOUNT
    history = trade_history("bank+brokerage", {"branches": 1, "customers": 2_000, "days": 40})
    assert history and history.trades_per_account == pytest.approx(460.8)


@pytest.mark.parametrize(
    ("workload", "scale"),
    [
        ("bank", {"customers": 1_000, "days": 1}),
        ("brokerage", {}),
        ("brokerage", {"customers": 1_000}),
        ("brokerage", {"customers": 1_000, "days": "1"}),
        ("brokerage", {"customers": 1_000, "days": float("nan")}),
        ("brokerage", None),
        (None, {"customers": 1_000, "days": 1}),
    ],
)
def test_what_is_not_known_has_no_depth(workload, scale):
    assert trade_history(workload, scale) is None


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([SMALL, LARGE], ["memory"]),
        ([NO_FLASH, CACHE], ["flash"]),
        ([CACHE, TIER], ["flash"]),
        ([SMALL | NO_FLASH, LARGE | CACHE], ["memory", "flash"]),
        ([{"array": {"dram_bytes": 1 << 30}}, {"array": {"flash_cache_bytes": 1 << 40}}], ["flash"]),
        ([{"scenario": {"name": "curve", "buffer_pool": {"curve": "auto"}}}], ["memory"]),
        ([SMALL, SMALL], None),
        ([CACHE, CACHE], None),
        ([SMALL], None),
    ],
)
def test_only_memory_and_flash_are_judged_by_the_history(runs, expected):
    assert varied(SHALLOW, *runs) == expected
    deep = SHALLOW | {"scale": {"customers": 1_000, "days": SHALLOW_DAYS}}
    assert varied(deep, *runs) is None
    assert varied({"name": "bank", "scale": {"branches": 20}}, *runs) is None


def test_several_databases_are_judged_each():
    """Variants of one scale are not held against those of another."""
    runs = [*made(SHALLOW, SMALL), *made(SHALLOW | {"scale": {"customers": 1_000, "days": 2}}, LARGE)]
    assert not list(shallow_histories(runs))
    assert [one.facts["days"] for one in shallow_histories([*runs, *made(SHALLOW, LARGE)])] == [5]


def test_the_scale_is_named_with_the_smallest_that_is_deep():
    [found] = shallow_histories(made(SHALLOW, SMALL, LARGE))
    assert found.kind is HistoryKind.SHALLOW
    assert found.facts == {
        "customers": 5_000, "days": 5, "trades_per_account": pytest.approx(57.6), "varied": ["memory"],
        "least_days": SHALLOW_DAYS, "with_customers": DEEP_CUSTOMERS, "least_bytes": DEEP_BYTES["PostgreSQL"],
    }  # fmt: skip
    [elsewhere] = shallow_histories(made(SHALLOW, SMALL | {"server": {"product": "another"}}, LARGE))
    assert elsewhere.facts["least_bytes"] is None


@pytest.mark.parametrize(("product", "dialect"), [("PostgreSQL", "postgresql"), ("SQL Server", "mssql")])
def test_its_size_is_what_the_loader_estimates(product, dialect):
    scale = {"customers": DEEP_CUSTOMERS, "days": SHALLOW_DAYS}
    expected = expected_bytes(dialect, find_workload("brokerage"), scale)
    assert expected == pytest.approx(DEEP_BYTES[product], rel=0.05)

"""The start of every variant: the database as loaded, its memory a share of it, a copy that is its own."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from support.embedded_servers import copied

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.errors import StallmarkError
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.experiment.user_run import Run
from stallmark.loaders import ledger
from stallmark.loaders.load import build
from stallmark.scenarios.model import Scenario
from stallmark.transactions.bank import WORKLOAD as BANK

SCENARIO: dict[str, Any] = {
    "name": "small", "title": "", "answers": "", "needs": "",
    "workload": {"name": "bank", "scale": {"branches": 1}},
    "users": 1, "warm_up": "0s", "measure": "1s",
    "variants": [{"name": "half", "buffer_pool": "50 %"}, {"name": "twice", "buffer_pool": "200 %"}],
}  # fmt: skip
MORE = "CREATE TABLE bank.more AS SELECT * FROM bank.accounts"
DROP = "DROP SCHEMA bank CASCADE; DROP SCHEMA stallmark CASCADE"


@pytest.fixture(scope="module")
def one(template: Path) -> Iterator[EmbeddedEngine]:
    with copied(template) as server:
        yield EmbeddedEngine(server, "bank")


@pytest.fixture
def engine(one: EmbeddedEngine) -> EmbeddedEngine:
    """The bank, built, and perhaps driven by the test before; no copy of it."""
    one.memory.give_back()
    one.backup.drop()
    build(one, BANK, {"branches": 1}, 1, workers=1)
    one.execute("DROP TABLE IF EXISTS bank.more")
    return one


@pytest.fixture
def prepare(engine: EmbeddedEngine, tmp_path: Path, monkeypatch) -> Callable[..., list[dict[str, Any]]]:
    """Runs a scenario as far as every run's preparation; returns what was done to memory in each, and its place."""

    def run(**changes: Any) -> list[dict[str, Any]]:
        memory: list[dict[str, Any]] = []
        monkeypatch.setattr(
            Run, "go", lambda self: memory.append(self._prepare().model_dump() | vars(self._order.place))
        )
        scenario = Scenario.model_validate(SCENARIO | changes)
        assert Runner(scenario, engine, tmp_path / "runs", Show(Console(file=io.StringIO()))).run().conditions_hold
        return memory

    return run


def tables(engine: EmbeddedEngine) -> set[str]:
    return {name for (name,) in engine.query("SELECT relname FROM pg_stat_user_tables WHERE schemaname = 'bank'")}


def test_shares_are_of_the_data_as_loaded_and_memory_was_what_it_was_before_the_first_variant(prepare, engine):
    before = engine.buffer_pool_bytes()
    first = prepare(reset="continue")
    engine.execute(MORE)
    engine.memory.cap(before)
    again = prepare(reset="continue", order="blocks")
    kept = ("original_bytes", "reached_bytes", "configured_bytes")
    assert [[each[name] for name in kept] for each in again] == [
        [each[name] for name in kept] for each in (*first, first[0])
    ]
    assert [(each["sequence"], each["repeat"], each["again"]) for each in again] == [
        (1, 1, False), (2, 1, False), (3, 2, True),
    ]  # fmt: skip
    assert [each["original_bytes"] for each in first] == [before, before]
    half, twice = (each["reached_bytes"] for each in first)
    assert twice == pytest.approx(4 * half, abs=4 * 1024**2)


def test_every_variant_starts_from_a_copy_of_the_database_as_loaded(prepare, engine):
    engine.execute(DROP)
    build(engine, BANK, {"branches": 1}, 1, workers=1)
    engine.backup.keep("another")
    prepare(reset="restore")
    entry = ledger.read(engine)
    assert entry and entry.driven and engine.backup.label() == entry.label
    engine.execute(MORE)
    prepare(reset="restore")
    assert "more" not in tables(engine)
    engine.execute(DROP)
    prepare(reset="restore", workload=SCENARIO["workload"] | {"seed": 2})
    anew = ledger.read(engine)
    assert anew and anew.identity.seed == 2 and engine.backup.label() == anew.label != entry.label
    engine.execute(DROP)


def test_a_database_that_was_driven_does_not_become_what_variants_start_from(prepare, engine):
    prepare(reset="continue")
    engine.execute(MORE)
    folder = engine.server.folder
    with pytest.raises(StallmarkError, match=rf"has nothing to start from: remove {folder} .*reset: continue"):
        prepare(reset="restore")
    assert engine.backup.label() is None and "more" in tables(engine)


def test_a_database_of_another_version_is_refused_and_stays(prepare, engine):
    """As one that was built before its procedures changed."""
    prepare(reset="continue")
    engine.execute("UPDATE stallmark.database SET version = version - 1")
    version = BANK.version
    try:
        with pytest.raises(StallmarkError) as refused:
            prepare(reset="continue")
    finally:
        engine.execute("UPDATE stallmark.database SET version = version + 1")
    assert str(refused.value) == (
        f"The database was built by data version {version - 1} of the bank, and this Stallmark has {version}: "
        f"`stallmark db remove {engine.directories()['data'].parent}` removes it, and then the same command builds it "
        "anew."
    )
    assert "history" in tables(engine)


def test_a_copy_that_is_not_what_it_says_is_refused(prepare, engine):
    prepare(reset="continue")
    entry = ledger.read(engine)
    assert entry
    engine.backup.keep(entry.label)
    with pytest.raises(StallmarkError, match="is not of the database as loaded"):
        prepare(reset="restore")


def test_texts_of_collectors_are_kept_beside_the_tables(tmp_path):
    run = Run.__new__(Run)
    run._collectors = [
        SimpleNamespace(files=dict),
        SimpleNamespace(files=lambda: {"plans/a.sqlplan": "<ShowPlanXML/>"}),
    ]
    run._keep_files(tmp_path)
    assert (tmp_path / "plans" / "a.sqlplan").read_text() == "<ShowPlanXML/>"

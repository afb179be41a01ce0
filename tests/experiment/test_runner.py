"""The start of every variant: the database as loaded, its memory a share of it, a copy that is its own."""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from support.embedded_servers import copied
from support.manifests import a_manifest

from stallmark.driver.controller import Drive, Interrupted
from stallmark.engines.postgres.embedded_engine import EmbeddedCaches, EmbeddedEngine
from stallmark.errors import StallmarkError
from stallmark.experiment import manifest, runs
from stallmark.experiment.manifest import devices_of
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.experiment.runs import Run, _finish
from stallmark.experiment.work import on_machines
from stallmark.loaders import ledger
from stallmark.loaders.load import build
from stallmark.record.manifest.course import LeftWaiting, LoadMachine, Unheard
from stallmark.record.manifest.storage import DirectIo
from stallmark.record.manifest.workload import Load, Workload
from stallmark.record.reader import find_records
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.model import Scenario
from stallmark.storage.emulator import ArrayModel
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
        "again."
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


# Caches that could not be emptied before a cold start stand in the record


LEFT = "The cache was not emptied of the changed pages of other databases: theirs."


def test_in_the_notes(read, bank: EmbeddedEngine, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(Run, "_drive", lambda self, writer: "that is enough")
    scenario = read(
        "start_cache: prefilled", "start_cache: cold", "reset: restore", "reset: continue",
        "emulated_array:\n  data: {spindles: 8, read_ms: 2, write_ms: 2, sync_ms: 1, mb_per_s: 150}\n", "",
        "  - name: bare\n    emulated_array: bare\n", "", "    buffer_pool: 8MiB\n", "    emulated_array: bare\n",
    )  # fmt: skip
    monkeypatch.setattr(EmbeddedCaches, "empty", lambda self: [LEFT])
    runner = Runner(scenario, EmbeddedEngine(bank.server, "bank"), tmp_path, Show(Console(file=io.StringIO())))
    runner.run()
    [record] = find_records([runner.folder])
    assert LEFT in record.manifest.notes


# The outcome of direct I/O is in the manifest, of data files that are read past the page cache


MODEL = ArrayModel(spindles=4, read_ms=5, write_ms=5, sync_ms=2, mb_per_s=150)


@pytest.mark.parametrize(
    ("here", "models", "recorded"),
    [(True, {}, True), (True, {"wal": MODEL}, True), (True, {"data": MODEL}, False), (False, {}, False)],
)
def test_it_is_tried_where_real_storage_is_read(tmp_path: Path, monkeypatch, here, models, recorded) -> None:
    outcome = DirectIo("unknown", "fuse.bindfs")
    tried: list[Path] = []
    monkeypatch.setattr(manifest, "direct_io", lambda folder: tried.append(folder) or outcome)
    folders = {"data": tmp_path, "wal": tmp_path} if here else {}
    engine = SimpleNamespace(
        directories=lambda: folders, built_in=lambda: {}, process=lambda: None, devices=SimpleNamespace(models=models)
    )
    found = devices_of(engine)
    assert found.direct_io == (outcome if recorded else None) and tried == [tmp_path] * recorded


# Background sessions of load machines: the record has as many as there are, once the machines are there


class FromMachines(Drive):
    """A drive whose users, as it says, are on another machine."""

    def start(self, *_) -> None:
        super().start()
        self.load_machines = [LoadMachine(number=1, executors=2, clock_within_ms=0.5)]

    def background_sessions(self) -> dict[str, int]:
        return {"bank": 5}

    def follow(self, *_) -> None:
        raise Interrupted("that is enough")


def test_a_run_records_those_of_its_machines(read, bank: EmbeddedEngine, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(runs, "Drive", FromMachines)
    scenario = read(sets=("emulated_array=null", "start_cache=as it is", "reset=continue", "variants=[{name: a}]"))
    runner = Runner(scenario, EmbeddedEngine(bank.server, "bank"), tmp_path, Show(Console(file=io.StringIO())))
    runner.run()
    [record] = find_records([runner.folder])
    assert record.manifest.workload.background_sessions == 5


def test_of_several_loads_each_has_its_own():
    users = {"kind": "users", "counts": ()}
    loads = (
        Load(name="shares", workload=Workload(name="brokerage", background_sessions=1), **users),
        Load(name="reports", kind="streams", workload=Workload(name="warehouse"), counts=()),
        Load(name="scan", kind="raw", counts=()),
        Load(name="mail", workload=Workload(name="mail"), **users),
    )
    manifest = a_manifest(loads=loads)
    changed = manifest.changed(**on_machines(manifest, {"shares": 4, "mail": 2}))
    assert [one.workload and one.workload.background_sessions for one in changed.loads] == [4, 0, None, 2]
    assert changed.workload == manifest.workload


# Transactions that waited or did not end when a run did: the record tells of which load they are


ARRIVALS, UNFINISHED = {"bank": 7, "mail": 0, None: 7}, {"bank": 0, "mail": 2}


def test_each_load_has_what_was_left_of_it(tmp_path):
    loads = [{"name": name, "kind": "users", "counts": []} for name in ("bank", "mail")]
    loads += [{"name": "scan", "kind": "raw", "counts": []}, {"name": "reports", "kind": "streams", "counts": []}]
    writer = RecordWriter(tmp_path / "run", a_manifest(loads=loads))
    drive = SimpleNamespace(
        finish=lambda: None,
        ended={},
        left_waiting=lambda load=None: LeftWaiting(arrivals=ARRIVALS[load]),
        unfinished=UNFINISHED.__getitem__,
        lost_reports=lambda: Unheard(unfinished=2),
        load_machines=[],
    )
    left = {"reports": {"left_waiting": LeftWaiting(arrivals=4), "given_up": 2}}
    beside = SimpleNamespace(ended={"scan": (3, "its disk is full")}, work_left=lambda name: left.get(name, {}))
    _finish(drive, beside, writer)  # type: ignore[arg-type]
    writer.close()
    bank, mail, scan, reports = writer.manifest.loads
    assert (bank.left_waiting.arrivals, bank.unfinished) == (7, 0)
    assert (mail.left_waiting.arrivals, mail.unfinished) == (0, 2)
    assert (scan.left_waiting.arrivals, scan.ended_s) == (0, 3)
    assert (reports.left_waiting.arrivals, reports.given_up) == (4, 2)
    assert writer.manifest.left_waiting.arrivals == 7

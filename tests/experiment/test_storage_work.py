"""Work on the storage itself around the runs: in which order, and what keeps anything from being measured."""

import io
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console
from support.manifests import a_manifest
from support.small_disks import fill, small_disk

from stallmark.engines.abilities import NoDevices, ServerArrays
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, ErrorClass, StallmarkError
from stallmark.experiment import runner as running
from stallmark.experiment import storage_work
from stallmark.experiment.manifest import PreparedStorage
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import ExperimentEnd, Runner
from stallmark.experiment.runs import Run
from stallmark.experiment.storage_work import HookFailed, StorageWork
from stallmark.record.manifest import read_manifest
from stallmark.record.manifest.course import Ended
from stallmark.record.manifest.storage import EmulatedArray
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.model import Scenario
from stallmark.stopping import StopSignal
from stallmark.storage.emulator.arrays import PROBE_FOLDER
from stallmark.storage.fio import SHORT_STEPS

SHOW = Show(Console(file=io.StringIO()))
SMALL: dict[str, Any] = {
    "name": "small", "title": "", "answers": "", "needs": "", "users": 1, "warm_up": "0s", "measure": "1s",
    "workload": {"name": "bank", "scale": {"branches": 1}}, "reset": "continue",
}  # fmt: skip


NO_ERRORS: Mapping[str, BaseException] = {}


def command(text: str) -> dict[str, Any]:
    return {"command": [sys.executable, "-c", text]}


class Emulated(ServerArrays):
    """An emulated array, and what was done to it."""

    models: Any = {"data": None, "wal": None}  # noqa: RUF012

    def __init__(self) -> None:
        self.done: list[str] = []

    @property
    def array(self) -> Any:
        return self

    def use(self, models: object) -> None: ...

    def engage(self) -> None:
        self.done.append("engage")

    def relax(self) -> None:
        self.done.append("relax")

    def empty_flash(self, name: str) -> None:
        self.done.append(f"empty {name}")


class Server:
    """An engine, as far as its storage goes."""

    def __init__(self, folder: Path, emulated: bool = False):
        self.folder = folder
        self.devices = Emulated() if emulated else NoDevices("none here")

    def directories(self) -> dict[str, Path]:
        return {"data": self.folder}

    def databases(self) -> tuple["Server", ...]:
        return (self,)

    def checkpoint(self) -> None: ...

    def bytes_used(self) -> int:
        return 1 << 30


@pytest.fixture
def work(tmp_path: Path) -> Callable[..., StorageWork]:
    def made(server: Any = None, **changes: Any) -> StorageWork:
        scenario = Scenario.model_validate(SMALL | {"variants": [{"name": "HDD"}]} | changes)
        return StorageWork(scenario, server or Server(tmp_path), SHOW)

    return made


@pytest.fixture(autouse=True)
def tools(monkeypatch) -> None:
    monkeypatch.setattr(storage_work, "can_probe", lambda: None)


def run(
    monkeypatch,
    tmp_path: Path,
    *variants: dict[str, Any],
    errors: Mapping[str, BaseException] = NO_ERRORS,
    hidden: str | None = None,
    **changes: Any,
) -> tuple[ExperimentEnd, list[dict]]:
    """An experiment without a database; what came out, and what the record of every run says of its array. A variant
    may be one of which `errors` has the error that its preparation ends with."""
    made: list[dict[str, Any]] = []

    def go(self: Run) -> None:
        if error := errors.get(self._variant.name):
            raise error
        known = {name: one for name, one in vars(self._order.prepared).items() if one is not None}
        made.append({"variant": self._variant.name, "notes": self._notes, **known})
        RecordWriter(self._order.folder, a_manifest(variant={"name": self._variant.name})).close()
        self._order.opened()

    engine = SimpleNamespace(
        dialect="postgresql",
        is_local=True,
        memory=None,
        checkpoint=lambda: None,
        buffer_pool_bytes=lambda: None,
        hidden_sessions_reason=lambda: hidden,
        database_name=lambda: "bank",
        directories=lambda: {},
        identity=lambda: SimpleNamespace(product="PostgreSQL"),
    )
    engine.databases = lambda: (engine,)
    monkeypatch.setattr(Run, "go", go)
    monkeypatch.setattr(running, "refuse_what_cannot_be", lambda *_: None)
    monkeypatch.setattr(running, "missing", lambda *_: 1 << 30)
    monkeypatch.setattr(Runner, "_prepare_database", lambda *_: SimpleNamespace(loaded_bytes=1 << 30))
    scenario = Scenario.model_validate(SMALL | {"variants": list(variants)} | changes)
    monkeypatch.setattr(running, "refuse_pool_sizes", lambda *_: None)
    run.made = made  # type: ignore[attr-defined]  # also after what is raised
    return Runner(scenario, engine, tmp_path, SHOW)._run(lambda: None), made  # type: ignore[arg-type]


def test_the_array_is_reconfigured_whenever_another_variant_comes_and_back_for_the_last(monkeypatch, tmp_path):
    log = tmp_path / "log"
    variants = [
        {"name": name, "array": {"raid": name}, "before": command(f"open({str(log)!r}, 'a').write({name!r})")}
        for name in ("A", "B")
    ]
    finished, made = run(monkeypatch, tmp_path, *variants, order="blocks", repeats=2)
    assert finished == ExperimentEnd(None, True) and log.read_text() == "ABA"
    assert [one["variant"] for one in made] == ["A", "A", "B", "B", "A", "A"]
    assert all(one["array"].raid == one["variant"] for one in made)
    assert all(one["hook"].output == "" for one in made)


def test_a_hook_that_fails_at_first_stops_before_anything_is_measured(monkeypatch, tmp_path):
    broken = {"name": "A", "before": command("import sys; sys.exit('array is full')")}
    with pytest.raises(HookFailed, match="it said: array is full"):
        run(monkeypatch, tmp_path, broken, {"name": "B", "before": command("")})
    assert run.made == []  # type: ignore[attr-defined]


def test_one_that_fails_later_keeps_what_was_measured(monkeypatch, tmp_path):
    broken = {"name": "B", "before": command("import sys; sys.exit('array is full')")}
    finished, made = run(monkeypatch, tmp_path, {"name": "A"}, broken)
    assert [one["variant"] for one in made] == ["A"]
    assert finished.incomplete_because and "it said: array is full" in finished.incomplete_because
    [kept] = [read_manifest(folder) for folder in tmp_path.glob("*/01-a")]
    assert kept.ended == Ended(before="B", because=finished.incomplete_because)


@pytest.mark.parametrize(
    ("error", "because"),
    [
        (StallmarkError("The copy is gone."), "The copy is gone"),
        (CallFailed(ErrorClass.OUT_OF_SPACE, "1105", "it is full"), "out of space (1105): it is full"),
        (OSError(28, "No space left on device", "/x/y"), "/x/y: No space left on device"),
        (StopSignal(signal.SIGINT), "stopped by Ctrl-C"),
        (KeyError("x"), "Stallmark ended unexpectedly"),
    ],
    ids=["ours", "server", "system", "Ctrl-C", "bug"],
)
def test_however_a_later_variant_s_preparation_ends_the_record_before_says_so(monkeypatch, tmp_path, error, because):
    three = [{"name": name} for name in "ABC"]
    if isinstance(error, StopSignal | KeyError):
        with pytest.raises(type(error)):
            run(monkeypatch, tmp_path, *three, errors={"C": error})
    else:
        assert run(monkeypatch, tmp_path, *three, errors={"C": error})[0] == ExperimentEnd(because, True)
    said = [read_manifest(folder).ended for folder in sorted(tmp_path.glob("*/0*"))]
    assert said == [None, Ended(before="C", because=because)]


def test_of_the_first_variant_there_is_no_record_and_its_error_is_raised(monkeypatch, tmp_path):
    with pytest.raises(StallmarkError, match="gone"):
        run(monkeypatch, tmp_path, {"name": "A"}, errors={"A": StallmarkError("The copy is gone.")})
    assert not list(tmp_path.glob("*/0*"))


def test_while_a_later_variant_is_prepared_the_record_before_says_that_for_a_kill_leaves_no_time(monkeypatch, tmp_path):
    seen = []

    def look(*_: Any) -> PreparedStorage:
        seen.extend(read_manifest(folder).ended for folder in sorted(tmp_path.glob("*/0*")))
        return PreparedStorage()

    monkeypatch.setattr(StorageWork, "make", look)
    finished, _ = run(monkeypatch, tmp_path, *({"name": name, "before": command("")} for name in "AB"))
    assert finished == ExperimentEnd(None, True) and seen == [Ended(before="B")]
    assert [read_manifest(folder).ended for folder in sorted(tmp_path.glob("*/0*"))] == [None, None]


def test_a_disk_that_is_full_between_two_runs_has_room_for_the_reason(monkeypatch, tmp_path):
    with small_disk(tmp_path / "disk", 24) as disk:

        def fail(*_: Any) -> PreparedStorage:
            if list(disk.glob("*/0*")):
                fill(disk)
                raise HookFailed("The array is full.")
            return PreparedStorage()

        monkeypatch.setattr(StorageWork, "make", fail)
        run(monkeypatch, disk, *({"name": name, "before": command("")} for name in "AB"))
        [made] = [read_manifest(folder) for folder in disk.glob("*/01-a")]
        assert made.ended == Ended(before="B", because="The array is full")


def test_nothing_is_asked_of_nobody(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    with pytest.raises(HookFailed, match="'B' asks the operator"):
        run(monkeypatch, tmp_path, {"name": "A"}, {"name": "B", "before": {"ask": "Ready?"}})
    assert run.made == []  # type: ignore[attr-defined]


@pytest.mark.parametrize("key", ["probe", "precondition"])
def test_without_a_tool_it_is_refused_before_anything_is_loaded(work, monkeypatch, key):
    monkeypatch.setattr(storage_work, "can_probe", lambda: "There is no fio here: install it.")
    asked = {"probe": "before and after", "precondition": {"size": "1GiB"}}[key]
    with pytest.raises(StallmarkError, match=f"small asks for `{key}`, but there is no fio here: install it"):
        work(**{key: asked}).refuse_impossible()


@pytest.mark.parametrize("key", ["probe", "precondition"])
def test_too_little_to_go_over_is_refused_before_anybody_is_asked(work, key):
    with pytest.raises(StallmarkError, match=rf"{key}.size: 16 MiB are gone over .*at least 32 MiB"):
        work(**{key: {"size": "16MiB"}}).refuse_impossible()
    work(precondition={"size": "1 %"}).refuse_impossible()
    work(**{key: {"size": "1 %"}}).refuse_sizes(4 << 30)
    with pytest.raises(StallmarkError, match=rf"{key}.size: 20 MiB are gone over"):
        work(**{key: {"size": "1 %"}}).refuse_sizes(2000 << 20)
    with pytest.raises(StallmarkError, match=r"too little for .* to read and write .*: (give it at most|make room)"):
        work(**{key: {"size": "100 %"}}).refuse_sizes(1 << 50)


def test_the_data_are_probed_where_they_lie(work, tmp_path, monkeypatch):
    """On the real device where the log alone is on an emulated one."""
    server = Server(tmp_path, emulated=True)
    server.devices.models = {"wal": None}
    seen = []
    monkeypatch.setattr(storage_work, "in_steps", lambda *given, **__: seen.append(given[-1]))
    work(server, probe="before and after").probe("A", 1 << 30)
    assert seen == [None]


def test_the_storage_of_a_server_elsewhere_must_be_named(work, tmp_path):
    elsewhere = Server(tmp_path)
    elsewhere.directories = lambda: {}  # type: ignore[method-assign]
    with pytest.raises(StallmarkError, match=r"probe\.folder: .* cannot be located from here: name a folder"):
        work(elsewhere, probe="before and after").refuse_impossible()
    work(elsewhere, probe={"folder": str(tmp_path)}).refuse_impossible()
    with pytest.raises(StallmarkError, match=r"there is no folder /no/such: name one on the storage"):
        work(elsewhere, probe={"folder": "/no/such"}).refuse_impossible()


def test_a_device_is_not_emulated_on_a_block_device_that_is_emulated_itself(work, tmp_path, monkeypatch):
    device = {"data": {"spindles": 2, "read_ms": 1, "write_ms": 1, "sync_ms": 1, "mb_per_s": 100}}
    emulating = work(emulated_array=device)
    emulating.refuse_impossible()
    array = EmulatedArray(block_device=True, name="array", spindles=2)
    monkeypatch.setattr(storage_work, "device_behind", lambda _: SimpleNamespace(name="loop7"))
    monkeypatch.setattr(storage_work, "emulated_array_of", lambda name: array if name == "loop7" else None)
    with pytest.raises(StallmarkError, match=r"is on the emulated array array, and variant 'HDD' emulates"):
        emulating.refuse_impossible()
    work().refuse_impossible()


def test_an_emulated_array_is_slow_while_it_is_probed_and_holds_nothing_of_the_probe_afterwards(
    work, tmp_path, monkeypatch
):
    server = Server(tmp_path, emulated=True)
    device: Any = server.devices

    def in_steps(folder: Path, steps: Any, devices: Any, *, seconds: float, size_bytes: int) -> Any:
        assert folder == tmp_path / PROBE_FOLDER and devices is device and seconds == 2
        assert size_bytes == 256 << 20 and steps == SHORT_STEPS
        device.done.append("probe")
        return "found"

    monkeypatch.setattr(storage_work, "in_steps", in_steps)
    assert work(server, probe={"seconds": "2s"}).probe("A", 1 << 30) == "found"
    assert device.done == ["empty data", "engage", "probe", "relax", "empty data"]
    assert work(server).probe("A", 1 << 30) is None


def test_the_file_of_a_probe_is_a_share_of_the_data_as_loaded(work, tmp_path, monkeypatch):
    """Not of what the database has grown to: probes on files of different sizes cannot be compared."""
    server, seen = Server(tmp_path), []
    monkeypatch.setattr(storage_work, "in_steps", lambda *_, size_bytes, **__: seen.append(size_bytes))
    probing = work(server, probe={"size": "25 %"})
    probing.probe("A", 1 << 30)
    server.bytes_used = lambda: 1 << 31  # type: ignore[method-assign]
    probing.probe("A", 1 << 30)
    assert seen == [1 << 28, 1 << 28]


@pytest.mark.parametrize(("rounds", "made"), [([9.0, 5.0, 4.0, *[3.0] * 9], 8), ([1.0, 2.0] * 6, 10)])
def test_an_array_is_written_to_until_writes_are_steady(work, monkeypatch, rounds, made):
    latencies, seeds = iter(rounds), []

    @contextmanager
    def own_file(folder: Path, size: int) -> Iterator[str]:
        assert size == 1 << 29
        yield "file"

    def measure(file: str, asked: Any, seconds: float, *, seed: int) -> list[Any]:
        assert (file, seconds) == ("file", 1) and not asked[0].pattern.reads
        seeds.append(seed)
        return [SimpleNamespace(mean_ms=next(latencies))]

    monkeypatch.setattr(storage_work, "make_probe_file", own_file)
    monkeypatch.setattr(storage_work, "measure", measure)
    asked = work(precondition={"size": "50 %", "round": "1s", "rounds": 10})
    done = asked.make(asked._scenario.variants[0]).precondition
    assert done.rounds_ms == tuple(rounds[:made]) and done.steady is (made < 10)
    assert len(set(seeds)) == made, "each round at other places"


def test_engines_have_what_it_asks_of_them():
    assert all(hasattr(Engine, name) for name in vars(Server) if not name.startswith("_") and name != "folder")


def test_each_run_notes_that_sessions_of_others_are_not_seen(monkeypatch, tmp_path):
    why = "this login has no VIEW SERVER STATE"
    _, made = run(monkeypatch, tmp_path, {"name": "A"}, {"name": "B"}, hidden=why)
    assert [one["notes"] for one in made] == [
        [f"Whether others have sessions in the database bank is not known: {why}."]
    ] * 2

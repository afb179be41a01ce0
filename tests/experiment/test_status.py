"""How far an experiment is, by its records alone."""

import io
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from rich.console import Console
from support.manifests import a_manifest, changed
from support.simulated_time import Clock
from support.waiting import eventually

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import NotGivenBack, StallmarkError
from stallmark.experiment import any_run, progress
from stallmark.experiment import progress as module
from stallmark.experiment.any_run import Watch
from stallmark.experiment.estimate import estimate
from stallmark.experiment.manifest import EndNote
from stallmark.experiment.progress import FEWEST, LATELY_S, LEAST_S, LoadPace, Show, show_build
from stallmark.experiment.remaining_runs import EarlierExperiment
from stallmark.experiment.runner import Runner
from stallmark.experiment.runs import Run
from stallmark.experiment.status import SILENT_S, State, newest, status
from stallmark.loaders.load import BuildProgress
from stallmark.record.reader import find_records
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.variant import Variant

RUN_S = 100  # from the start of one run to that of the next
LOAD_S = 11


def runs(folder: Path, read, *reasons: str | None, began_s_ago: float = 0, planned: int = 4) -> Path:
    """An experiment of four runs, RUN_S each, the last of which began `began_s_ago`: see test_resume."""
    variants = ", ".join(f"{{name: v{number}}}" for number in range(1, planned + 1))
    scenario = read(sets=("emulated_array=null", f"variants=[{variants}]"))
    first = datetime.now(UTC) - timedelta(seconds=began_s_ago + RUN_S * (len(reasons) - 1))
    for number, reason in enumerate(reasons, 1):
        writer = RecordWriter(
            folder / f"{number:02d}-v{number}",
            a_manifest(
                scenario=scenario.model_dump(mode="json"), variant={"name": f"v{number}"}, sequence=number,
                experiment=folder.name, started=(first + timedelta(seconds=RUN_S * (number - 1))).isoformat(),
                steps=[{"name": "4 users", "users": 4, "begin_s": 0, "measure_s": 1, "end_s": LOAD_S}],
            ),
        )  # fmt: skip
        if reason != "":
            if reason is None:
                writer.update(took={"prepare_s": RUN_S / 2, "load_s": LOAD_S, "end_s": RUN_S / 2 - LOAD_S})
            writer.close(reason)
    return folder


@pytest.mark.parametrize(
    ("reasons", "state", "whole"),
    [
        ((None, ""), State.RUNNING, 1),
        ((None,), State.BETWEEN, 1),
        ((None,) * 4, State.COMPLETE, 4),
        ((None, "the server was gone"), State.ENDED, 1),
    ],
)
def test_state(read, tmp_path, reasons, state, whole):
    found = status(runs(tmp_path / "x", read, *reasons))
    assert (found.state, found.whole, found.planned) == (state, whole, 4)
    assert (found.now is not None) == (state is State.RUNNING)
    assert (found.left_s is not None) == (state in (State.RUNNING, State.BETWEEN))


def test_a_run_whose_record_does_not_grow_is_silent_and_has_no_time_left(read, tmp_path):
    folder = runs(tmp_path / "x", read, None, "", began_s_ago=SILENT_S + 60 + LOAD_S / 2)
    began = datetime.fromisoformat(find_records([folder])[-1].manifest.started).timestamp()
    long_ago = began + LOAD_S / 2
    for path in (folder / "02-v2").iterdir():
        os.utime(path, (long_ago, long_ago))
    found = status(folder)
    assert found.state is State.SILENT and found.silent_s == pytest.approx(SILENT_S + 60, abs=30)
    assert found.left_s is None
    assert found.now.phase == "measuring" and found.now.elapsed_s == pytest.approx(LOAD_S / 2, abs=0.1)


def test_why_it_ended_is_said_where_no_run_followed(read, tmp_path):
    folder = runs(tmp_path / "x", read, None, None)
    note = EndNote()
    note.preparing(folder / "02-v2", "v3")
    assert status(folder).state is State.BETWEEN
    note.record_failure(StallmarkError("The hook failed."))
    assert (status(folder).state, status(folder).because) == (State.ENDED, "The hook failed")


@pytest.mark.parametrize(("began_s_ago", "phase"), [(0.4, "warming up"), (5, "measuring"), (60, "ending")])
def test_the_phase_is_that_of_the_step(read, tmp_path, began_s_ago, phase):
    now = status(runs(tmp_path / "x", read, "", began_s_ago=began_s_ago)).now
    assert now and (now.phase, now.users, now.number, now.variant) == (phase, 4, 1, "v1")
    assert now.tps is None and now.read_ms is None  # nothing was measured yet


def test_the_time_left_goes_by_whole_runs_and_before_there_are_any_by_the_estimate(read, tmp_path):
    found = status(runs(tmp_path / "a", read, None, None, "", began_s_ago=40))
    assert found.refined and found.left_s == pytest.approx(2 * RUN_S - 40, abs=20)
    folder = runs(tmp_path / "b", read, "", began_s_ago=5)
    expected = estimate(read(sets=("emulated_array=null",)), to_build=0, to_copy=False)
    first = status(folder)
    assert not first.refined and first.left_s is not None
    assert first.left_s > 4 * expected.load_s - 5  # and what belongs to the runs
    changed(folder / "01-v1", took={"prepare_s": 10_000})
    assert status(folder).left_s == pytest.approx(4 * expected.load_s - 5, abs=5)  # never less than the load


def test_a_pause_before_a_resumed_run_is_no_running_time(read, tmp_path):
    folder = runs(tmp_path / "x", read, None, None, "")
    changed(folder / "02-v2", resumed_after_s=50.0)
    began = datetime.now(UTC) - timedelta(hours=5)
    changed(folder / "01-v1", started=began.isoformat())
    found = status(folder)
    assert found.left_s == pytest.approx(2 * RUN_S, abs=20)


def test_what_the_operator_is_asked_next_is_told_between_runs(read, tmp_path):
    asked = ("emulated_array=null", "reset=continue", "order=blocks", "repeats=2")
    hooks = ("variants.0.before={ask: Ready for slow?}", "variants.1.before={ask: Ready for bare?}")
    scenario = read("    emulated_array: bare\n", "", sets=(*asked, *hooks)).model_dump(mode="json")
    for number, asks in enumerate((None, ("bare", "Ready for bare?"), None), 1):
        folder = runs(tmp_path / str(number), read, *[None] * number, planned=4)
        for path in folder.iterdir():
            changed(path, scenario=scenario)
        assert status(folder).asks == asks


def test_the_newest_experiment_is_found(read, tmp_path):
    for name in ("20260102-a", "20260103-b", "20260101-c"):
        runs(tmp_path / name, read, None)
    assert newest(tmp_path).name == "20260103-b"
    with pytest.raises(StallmarkError):
        newest(tmp_path / "nothing")


def test_no_less_time_is_left_than_the_load_takes(read, tmp_path):
    folder = runs(tmp_path / "x", read, None, None, None)
    long_ago = time.time() - 5000
    os.utime(folder / "03-v3" / "manifest.json", (long_ago, long_ago))  # since then the fourth is being prepared
    assert status(folder).left_s == read().timeline(Variant(name="one")).end_s


def test_a_single_run_is_no_experiment_and_of_runs_set_aside_alone_the_state_is_known(read, tmp_path):
    folder = runs(tmp_path / "x", read, "the server was gone")
    with pytest.raises(StallmarkError):
        status(folder / "01-v1")
    EarlierExperiment.read(folder).make_room(1)
    assert (status(folder).state, status(folder).whole) == (State.ENDED, 0)


# A server that is not held for us any more ends the run, with the reason


GONE = "The lock that every run takes is gone: run again."
TWO_VARIANTS = (
    "emulated_array=null", "start_cache=as it is", "reset=continue", "measure=60s", "variants=[{name: a}, {name: b}]",
)  # fmt: skip


def gone() -> None:
    raise StallmarkError(GONE)


class Held(EmbeddedEngine):
    """Looks go through `look`; at the end something `is_left`."""

    look: Callable[[], None] = staticmethod(lambda: None)
    is_left = False

    @contextmanager
    def hold(self) -> Iterator[Callable[[], None]]:
        yield lambda: self.look()
        if self.is_left:
            raise NotGivenBack("The memory is still capped.")


@pytest.fixture
def engine(bank: EmbeddedEngine) -> Held:
    return Held(bank.server, "bank")


@pytest.fixture
def runner(engine: Held, read, tmp_path: Path) -> Runner:
    return Runner(read(sets=TWO_VARIANTS), engine, tmp_path / "runs", Show(Console(file=io.StringIO())))


def test_it_looks_again_and_again_until_something_is_wrong(monkeypatch):
    monkeypatch.setattr(any_run, "WATCH_EVERY_S", 0.001)
    looks = [gone, lambda: None, lambda: None]
    with Watch(lambda: looks.pop()()) as watching:
        eventually(lambda: watching.why is not None)
    assert watching.why == GONE.rstrip(".") and not looks


def test_a_run_ends_with_the_reason(runner, engine, monkeypatch):
    monkeypatch.setattr(any_run, "WATCH_EVERY_S", 0.2)
    looks = [gone, lambda: None, lambda: None]  # the first before the variant
    engine.look = lambda: looks.pop()()
    finished = runner.run()
    assert finished.incomplete_because == GONE.rstrip(".")
    [record] = find_records([runner.folder])
    assert record.manifest.status == "incomplete" and GONE.rstrip(".") in str(record.manifest)


def test_what_became_of_the_server_comes_before_what_failed(runner, engine, monkeypatch):
    def fail(*_: object) -> None:
        raise StallmarkError("The market is closed.")

    monkeypatch.setattr(Run, "_drive", fail)
    looks = [gone, lambda: None]
    engine.look = lambda: looks.pop()()
    assert runner.run().incomplete_because == f"{GONE} The market is closed"


def test_no_variant_begins_without_it(runner, engine, monkeypatch):
    began = []
    monkeypatch.setattr(Run, "go", lambda self: began.append(self))
    looks = [gone, lambda: None]
    engine.look = lambda: looks.pop()()
    assert runner.run().incomplete_because == GONE.rstrip(".")
    assert len(began) == 1


def test_what_is_left_on_the_server_is_said_beside_the_reason(runner, engine, monkeypatch):
    engine.is_left = True
    monkeypatch.setattr(Run, "go", lambda self: "the server went away")
    assert runner.run().incomplete_because == "the server went away. The memory is still capped"


def test_and_alone_where_the_run_was_whole(runner, engine, monkeypatch):
    engine.is_left = True
    monkeypatch.setattr(Run, "go", lambda self: None)
    with pytest.raises(NotGivenBack, match="still capped"):
        runner.run()


# Bars on a terminal, lines elsewhere


def console(terminal: bool, width: int = 80) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, _environ={"TERM": "xterm"})


def written(show: Show) -> str:
    return show.console.file.getvalue()


def test_without_a_terminal_there_are_lines_and_no_control_characters(monkeypatch):
    show = Show(console(terminal=False))
    with show.bar("[1/2] small: running", 10):
        show.advance(1, "too early to be said")
        monkeypatch.setattr(module, "PLAIN_EVERY_S", 0)
        show.advance(5, "measuring, 3 users, 100 TPS")
    lines = written(show).splitlines()
    assert lines[0] == "[1/2] small: running: measuring, 3 users, 100 TPS, about 5 seconds left"
    assert lines[1].startswith("[1/2] small: running: done in ")
    assert len(lines) == 2 and "\x1b" not in written(show)


def test_lines_say_how_long_it_takes_yet(monkeypatch):
    show = Show(console(terminal=False))
    monkeypatch.setattr(module, "PLAIN_EVERY_S", 20)
    monkeypatch.setattr(module, "time", Clock(0, 100, 130))
    with show.bar("Building", None):
        show.advance(1_000, "load", 10_000)
        show.advance(4_000, "load", 10_000)
    assert "load, about 1 minute left" in written(show).splitlines()[1]


def test_work_by_the_clock_takes_as_long_as_planned_though_it_began_late(monkeypatch):
    show = Show(console(terminal=False))
    monkeypatch.setattr(module, "time", Clock(0, 0, 20, 25))
    with show.bar("Running", 26):
        show.advance(0, "starting")
        show.advance(2, "measuring")
    assert "measuring, about 24 seconds left" in written(show).splitlines()[0]


def test_lines_are_not_broken_in_a_file():
    show = Show(console(terminal=False, width=20))
    show.say("a sentence that is longer than twenty characters")
    assert written(show) == "a sentence that is longer than twenty characters\n"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_bar_and_its_note_stay_in_one_line_of_a_terminal(width):
    show = Show(console(terminal=True, width=width))
    with show.bar("[5/5] 20 %, this machine's own disk: running", 10):
        show.advance(5, "measuring, 30 users")
        rendered = show.console.render_lines(show._progress.get_renderable())
    assert len(rendered) == 1
    text = "".join(segment.text for segment in rendered[0])
    assert "measuring, 30 users" in text and "━" in text
    assert written(show).splitlines()[-1].strip() or width < 60


def test_a_bar_that_failed_leaves_no_line_that_it_was_done():
    show = Show(console(terminal=False))
    with pytest.raises(RuntimeError), show.bar("loading", None):
        raise RuntimeError
    assert "done" not in written(show)


def test_a_build_says_what_it_does(monkeypatch):
    monkeypatch.setattr(module, "PLAIN_EVERY_S", 0)
    show = Show(console(terminal=False))
    with show_build(show, "Building bank (branches 1)") as report:
        report(BuildProgress("load", 50_000, 100_011, 5_000_000))
    assert written(show).startswith("Building bank (branches 1): load, 50,000 rows, 4.77\u00a0MiB\n")


# The time that a load still takes, as far as it can be known


ROWS = 100_000


def pace_of(*seconds: float) -> LoadPace:
    """Return what is known after batches of so many rows that took so long."""
    pace, now = LoadPace(), 1_000.0
    pace.note(now, 0)
    for number, took in enumerate(seconds, 1):
        now += took
        pace.note(now, number * ROWS)
    return pace


def test_a_steady_load_says_one_time():
    pace = pace_of(*[2.0] * 10)
    assert pace.rate == pytest.approx(ROWS / 2)
    assert pace.left_s(30 * ROWS) == pytest.approx((60, 60))


@pytest.mark.parametrize("seconds", [[2.0] * (FEWEST - 1), [LEAST_S / 20] * 12], ids=["batches", "seconds"])
def test_nothing_is_said_after_too_few(seconds: list[float]):
    assert pace_of(*seconds).rate is None
    assert pace_of(*seconds).left_s(ROWS) is None


def test_two_times_where_the_rate_was_not_steady():
    least, most = pace_of(*[2.0] * 6, *[3.0] * 6).left_s(10 * ROWS)
    assert (least, most) == pytest.approx((20, 30))


def test_no_time_where_rates_have_nothing_to_do_with_each_other():
    pace = pace_of(*[1.0] * 6, *[9.0] * 6)
    assert pace.rate and pace.left_s(ROWS) is None


def test_a_load_that_has_become_slower_goes_by_what_it_did_lately():
    slower = int(LATELY_S / 4) + 1
    assert pace_of(*[0.5] * 100, *[4.0] * slower).left_s(10 * ROWS) == pytest.approx((40, 40))


def test_large_batches_are_older_than_a_minute_and_still_known():
    assert pace_of(*[300.0] * (FEWEST + 3)).left_s(2 * ROWS) == pytest.approx((600, 600))


def test_waiting_for_another_build_is_no_load():
    pace = pace_of(*[2.0] * 10)
    pace.note(5_000.0, 10 * ROWS)  # the same rows: nothing was loaded
    assert pace.rate == pytest.approx(ROWS / 2)


def test_a_build_says_the_time_of_its_load_and_then_what_share_of_a_phase_is_done(monkeypatch):
    clock = Clock(0.0)
    monkeypatch.setattr(progress, "time", clock)
    show = Show(Console(file=io.StringIO(), force_terminal=False))
    notes = []
    with show_build(show, "Building") as report:
        for number in range(41):
            report(BuildProgress("load", number * ROWS, 40 * ROWS, number))
            notes.append(show.doing.note)
            clock.sleep(3)
        assert (show.doing.done, show.doing.total) == (40 * ROWS, 40 * ROWS)
        report(BuildProgress("keys and indexes", 40 * ROWS, 40 * ROWS, 1, 0.25))
        assert (show.doing.done, show.doing.total) == (0.25, 1.0)
        assert "25 %" in show.doing.note and "left" not in show.doing.note
    told = [" left, " in note for note in notes]
    assert told == [False] * FEWEST + [True] * (40 - FEWEST) + [False]
    assert "about 60 seconds left, " in notes[20] and "keys" in notes[20]


def test_the_next_of_several_databases_is_another_load(monkeypatch):
    clock = Clock(0.0)
    monkeypatch.setattr(progress, "time", clock)
    show = Show(Console(file=io.StringIO(), force_terminal=False))
    with show_build(show, "Building") as report:
        for number in range(20):
            report(BuildProgress("load", number * ROWS, 40 * ROWS, 0))
            clock.sleep(3)
        report(BuildProgress("statistics", 20 * ROWS, 40 * ROWS, 0))
        clock.sleep(600)
        report(BuildProgress("load", 20 * ROWS, 40 * ROWS, 0))
        assert "left" not in show.doing.note

"""How far an experiment is, by its records alone."""

import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.manifests import a_manifest, changed

from stallmark.errors import StallmarkError
from stallmark.experiment.end_note import EndNote
from stallmark.experiment.estimate import estimate
from stallmark.experiment.resume import EarlierExperiment
from stallmark.experiment.status import SILENT_S, State, newest, status
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
    folder = runs(tmp_path / "x", read, None, "")
    long_ago = time.time() - SILENT_S - 60
    for path in (folder / "02-v2").iterdir():
        os.utime(path, (long_ago, long_ago))
    found = status(folder)
    assert found.state is State.SILENT and found.silent_s == pytest.approx(SILENT_S + 60, abs=30)
    assert found.left_s is None


def test_why_it_ended_is_said_where_no_run_followed(read, tmp_path):
    folder = runs(tmp_path / "x", read, None, None)
    note = EndNote()
    note.preparing(folder / "02-v2", "v3")
    assert status(folder).state is State.BETWEEN
    note.ended(StallmarkError("The hook failed."))
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

"""No limit is judged from a step in which the server was lost."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from support.findings import facts_of, kinds_of
from support.synthetic import make_run
from support.synthetic_steps import STEADY, WAITS, only_step
from support.tables import get, put

from stallmark.analysis.driver_bound import DriverKind
from stallmark.analysis.step_summary import NoteKind, StepSummary
from stallmark.analysis.validity import ValidityKind
from stallmark.stats.thresholds import LOST_WITHIN_S

pytestmark = pytest.mark.thorough

LOST = (ValidityKind.SERVER_STARTED, ValidityKind.CONNECTIONS_LOST)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run", replace(STEADY, read_ms=27, waits=WAITS))


def started(folder: Path, at: float, *, reset_at: float = 1e9) -> StepSummary:
    """The step of a run whose server started at some second, and whose counters were reset at another."""
    table = get(folder, "server_io")
    rows = table.to_pylist()
    for row in rows:
        row["epoch"] = f"reset {row['t'] >= reset_at} start {'2' if row['t'] >= at else '1'}.5"
    put(folder, "server_io", pa.Table.from_pylist(rows, schema=table.schema))
    return only_step(folder)


def broken(folder: Path, *lost: tuple[int, int], kind: str = "connection lost") -> StepSummary:
    """The step of a run with so many lost connections in each of these seconds."""
    schema = get(folder, "errors").schema
    rows = [
        {
            "second": second, "transaction": "transfer", "error_class": kind, "code": "57P01", "attempts": count,
            "given_up": 0, "message": "terminating connection due to administrator command",
        }
        for second, count in lost
    ]  # fmt: skip
    put(folder, "errors", pa.Table.from_pylist(rows, schema=schema))
    return only_step(folder)


def is_judged(step: StepSummary) -> bool:
    """Return whether a limit is judged from a step: all of it or nothing."""
    parts = (step.bottleneck.device_verdict, step.cause and step.cause.budget, step.cause and step.cause.demands)
    found = {part is not None for part in parts}
    assert len(found) == 1
    if found == {False}:
        assert step.cause and kinds_of(step.cause.notes) == [NoteKind.SERVER_LOST]
        assert not step.cause.predictions and not step.bottleneck.correlations and step.bottleneck.is_device is None
    return found.pop()


def test_a_server_that_started_again_is_not_judged(folder: Path):
    assert is_judged(only_step(folder))
    step = started(folder, 20.0)
    [fact] = facts_of(step.validity.invalid, ValidityKind.SERVER_STARTED)
    assert fact["before_s"] < 20.0 <= fact["after_s"] and not is_judged(step)


@pytest.mark.parametrize("at", [0.0, 3.0, 1e9])
def test_one_that_started_before_is(folder: Path, at: float):
    step = started(folder, at)
    assert not facts_of(step.validity.invalid, ValidityKind.SERVER_STARTED) and is_judged(step)


def test_a_reset_of_counters_is_no_start_of_the_server(folder: Path):
    step = started(folder, 1e9, reset_at=20.0)
    kinds = [one.kind for one in step.validity.invalid]
    assert ValidityKind.COUNTERS_BEGAN_AGAIN in kinds and not set(kinds) & set(LOST)


@pytest.mark.parametrize("kind", ["connection lost", "unknown outcome"])
def test_a_server_that_all_users_lost_is_not_judged(folder: Path, kind: str):
    step = broken(folder, (20, STEADY.users - 10), (24, 10), kind=kind)
    [fact] = facts_of(step.validity.invalid, ValidityKind.CONNECTIONS_LOST)
    assert fact == {"users": STEADY.users, "lost": STEADY.users, "within_s": LOST_WITHIN_S} and not is_judged(step)


@pytest.mark.parametrize(
    ("lost", "kind"),
    [
        ([(20, 1)], "connection lost"),  # of one user, whose session somebody ended
        ([(20, 29)], "connection lost"),
        ([(12, 15), (12 + LOST_WITHIN_S, 15)], "connection lost"),  # one after the other
        ([(2, 30)], "connection lost"),  # in the warm-up
        ([(20, 30)], "deadlock"),
    ],
)
def test_connections_lost_one_by_one_are_no_loss_of_the_server(folder: Path, lost, kind: str):
    step = broken(folder, *lost, kind=kind)
    assert not facts_of(step.validity.invalid, ValidityKind.CONNECTIONS_LOST) and is_judged(step)


def test_a_server_that_was_lost_in_the_warm_up_and_did_not_come_back_is_not_judged(folder: Path):
    table = get(folder, "transactions")
    put(folder, "transactions", table.filter(pc.less(table["second"], 3)))
    step = broken(folder, (2, STEADY.users))
    [fact] = facts_of(step.validity.invalid, ValidityKind.CONNECTIONS_LOST)
    assert fact["lost"] == STEADY.users and not is_judged(step)
    assert not facts_of(step.validity.invalid, DriverKind.OVERHEAD)


def test_one_that_came_back_before_the_interval_is(folder: Path):
    table, measured_from = get(folder, "transactions"), int(only_step(folder).interval.begin_s)
    away = pc.and_(pc.greater_equal(table["second"], 3), pc.less(table["second"], measured_from - 1))
    put(folder, "transactions", table.filter(pc.invert(away)))
    step = broken(folder, (2, STEADY.users))
    assert not facts_of(step.validity.invalid, ValidityKind.CONNECTIONS_LOST)

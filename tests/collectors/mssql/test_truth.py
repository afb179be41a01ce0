"""The record says what is true of a server, whatever gets in the way of those who ask.

1,000 reads a second of 7.3 ms, measured from second 5 to second 35.
"""

from html import escape
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from support.findings import facts_of
from support.mssql_records import summary
from support.mssql_server import Server
from support.pages import render, table
from support.programmed import READ_MS, READS_PER_S, WRITE_MS, WRITES_PER_S, Programme, recorded

from stallmark.analysis.experiment import marks
from stallmark.analysis.read.times import ReadKind
from stallmark.analysis.run import RunSummary
from stallmark.analysis.validity import ValidityKind
from stallmark.report.text import sentence

pytestmark = pytest.mark.thorough


def found(server: Server, folder: Path, **programme: object) -> RunSummary:
    record, _ = recorded(server, folder / "run", Programme(**programme))  # type: ignore[arg-type]
    return summary(record).runs[0]


def is_true(run: RunSummary) -> bool:
    [step] = run.steps
    data, log = step.storage.data, step.storage.wal
    assert data is not None and log is not None
    assert data.reads / data.seconds == pytest.approx(READS_PER_S, rel=0.01)
    assert data.read_ms == pytest.approx(READ_MS, rel=0.001)
    assert step.storage.read_stall_ms_per_s == pytest.approx(READS_PER_S * READ_MS, rel=0.01)
    assert log.writes / log.seconds == pytest.approx(WRITES_PER_S, rel=0.01)
    assert log.write_ms == pytest.approx(WRITE_MS, abs=0.01)
    return True


@pytest.mark.parametrize(
    "programme",
    [
        {},
        {"login_s": 11.6},
        {"begin_s": 3.7, "login_s": 2.0},
        {"slow": lambda now: now < 8, "answer_s": 5.0},  # over the begin of the interval
        {"slow": lambda now: 5 < now < 30, "answer_s": 1.7},
        {"slow": lambda now: now > 32, "queue_s": 2.4, "answer_s": 0.1},  # counted at the end of its call
        {"slow": lambda now: int(now) % 7 == 0, "queue_s": 1.9},
        {"null": lambda now: 10 < now < 20},
        {"null": lambda now: int(now) % 3 == 0},
        {"refused": lambda now: 12 < now < 25},
        {"restart_s": 3.2},  # before the interval
        {"clock_offset_s": 5400.0},
        {"clock_offset_s": -7.25, "clock_drift": 2e-3, "slow": lambda now: now < 8, "answer_s": 5.0},
    ],
)
def test_rates_and_times_are_true(server: Server, tmp_path: Path, programme: dict) -> None:
    assert is_true(found(server, tmp_path, **programme))


def test_the_servers_clock_is_told_with_how_sure_that_is(server: Server, tmp_path: Path) -> None:
    clock = found(server, tmp_path, clock_offset_s=-7.25, slow=lambda now: now < 8, answer_s=5.0).clock
    assert clock is not None
    assert abs(clock.offset_s - (1.7e9 - 7.25)) <= clock.uncertainty_s < 0.01


@pytest.mark.parametrize(
    ("programme", "unseen_s", "covered_s"),
    [
        ({}, None, 30),
        ({"refused": lambda now: 12 < now < 25}, 13, 30),  # what was counted meanwhile is in the next sample
        ({"refused": lambda now: now < 9.5}, 5, 25),
        ({"refused": lambda now: now > 24.5}, 11, 19),
        ({"slow": lambda now: 14.5 < now < 15.5, "answer_s": 9.5}, 10, 30),
        ({"login_s": 11.6}, 6.6, 23.4),
    ],
)
def test_a_gap_is_said_and_rates_are_over_the_time_that_was_seen(
    server: Server, tmp_path: Path, programme: dict, unseen_s: float | None, covered_s: float
) -> None:
    run = found(server, tmp_path, **programme)
    [step] = run.steps
    gaps = facts_of(step.validity.gaps, ReadKind.NOT_READ)
    assert [one["seconds"] for one in gaps] == ([] if unseen_s is None else [pytest.approx(unseen_s, abs=0.2)])
    assert is_true(run) and step.storage.data is not None
    assert step.storage.data.seconds == pytest.approx(covered_s, abs=0.2)
    assert bool(facts_of(step.validity.invalid, ValidityKind.COUNTERS_INCOMPLETE)) == (covered_s < 27)


@pytest.mark.parametrize(
    ("programme", "seconds"),
    [
        ({}, None),
        ({"slow": lambda now: 15 < now < 20, "answer_s": 2.5}, None),  # in the middle it changes nothing
        ({"slow": lambda now: now < 8, "answer_s": 2.5}, 2.5),
        ({"slow": lambda now: now > 33, "answer_s": 2.5}, 2.5),
        ({"slow": lambda now: True, "queue_s": 1.2, "answer_s": 1.2}, 2.4),
    ],
)
def test_where_it_matters_that_calls_are_slow_it_is_said(server, tmp_path, programme, seconds) -> None:
    run = found(server, tmp_path, **programme)
    [step] = run.steps
    rough = facts_of(step.validity.gaps, ReadKind.DATED_ROUGHLY)
    assert [one["seconds"] for one in rough] == ([] if seconds is None else [pytest.approx(seconds, abs=0.1)])
    assert step.storage.data.read_ms == pytest.approx(READ_MS, rel=0.001)
    rate = step.storage.data.reads / step.storage.data.seconds
    assert rate == pytest.approx(READS_PER_S, rel=0.01 + sum(one["seconds"] / 30 for one in rough))


@pytest.mark.parametrize("programme", [{"answer_s": 3.9}, {"queue_s": 3.9}, {"queue_s": 2.0, "answer_s": 4.5}])
def test_a_view_that_takes_seconds_gives_figures_with_their_uncertainty(server, tmp_path, programme) -> None:
    run = found(server, tmp_path, slow=lambda now: True, **programme)
    [step] = run.steps
    [few] = facts_of(step.validity.gaps, ReadKind.FEW_SAMPLES)
    apart_s = 4 if sum(programme.values()) < 5 else 7
    assert few["seconds"] == pytest.approx(apart_s, abs=0.6) and few["measured_s"] == 30
    assert not facts_of(step.validity.gaps, ReadKind.NOT_READ)
    assert not facts_of(step.validity.invalid, ValidityKind.COUNTERS_INCOMPLETE)
    data = step.storage.data
    assert data is not None and data.seconds == 30
    assert data.uncertainty == pytest.approx(few["seconds"] / 30, rel=0.2)
    assert data.reads / data.seconds == pytest.approx(READS_PER_S, rel=data.uncertainty)
    assert data.read_ms == pytest.approx(READ_MS, rel=0.001)


def test_gaps_stand_in_the_terminal_and_in_the_report(server: Server, tmp_path: Path) -> None:
    record, _ = recorded(server, tmp_path / "run", Programme(refused=lambda now: 12 < now < 25))
    experiment = summary(record)
    [gap] = [one for one in marks(experiment.runs[0], experiment.steps[0]) if one.kind is ReadKind.NOT_READ]
    console = Console(width=4000, file=StringIO(), record=True)
    console.print(table(experiment))
    assert sentence(gap) in console.export_text() and escape(sentence(gap)) in render(experiment)


def test_a_query_that_is_refused_is_no_reason_for_another_login(server: Server, tmp_path: Path) -> None:
    recorded(server, tmp_path / "run", Programme(refused=lambda now: 12 < now < 25))
    asked = [it.connection for it in server.responder.requests if "dm_io_virtual_file_stats" in (it.text or "")]
    assert len(asked) > 30 and len(set(asked)) == 1


def test_a_restart_within_the_interval_leaves_no_figure(server: Server, tmp_path: Path) -> None:
    [step] = found(server, tmp_path, restart_s=20.0).steps
    assert step.storage.data is None
    assert facts_of(step.validity.invalid, ValidityKind.COUNTERS_BEGAN_AGAIN)


def test_a_null_is_no_restart(server: Server, tmp_path: Path) -> None:
    [step] = found(server, tmp_path, null=lambda now: now < 12).steps
    assert not facts_of(step.validity.invalid, ValidityKind.COUNTERS_BEGAN_AGAIN)
    assert step.storage.data is not None and step.storage.data.seconds == pytest.approx(23, abs=0.1)
    assert step.storage.data.read_ms == pytest.approx(READ_MS, rel=0.001)

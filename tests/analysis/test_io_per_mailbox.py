"""The sentence on a step that was steered to I/Os per mailbox: when it is said how many are carried, and when not."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.report_summaries import io
from support.synthetic_steps import only_step, steady

from stallmark.analysis.io_per_mailbox import IoPerMailboxKind, io_per_mailbox
from stallmark.analysis.points import Point
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io_per_mailbox import IoPerMailbox, apart_iops, summarise_io_per_mailbox
from stallmark.analysis.read.throughput import Load
from stallmark.record.manifest.workload import Steered, Transaction

__all__ = ["steady"]

STEERED = Steered(wanted=0.12, mailboxes=200, limit_ms=20, outcome="reached", rate=3.0, within=0.03, windows=20)


def judged(*runs: dict[str, Any]) -> Any:
    class OneStep:
        variant = step = "mail"
        users = 20

        def __init__(self, given: dict[str, Any]):
            seen = summarise_io_per_mailbox(STEERED, None, None)
            assert seen
            self.io_per_mailbox: IoPerMailbox | None = replace(seen, **given)

    [finding] = io_per_mailbox([Point(tuple(map(OneStep, runs)))])  # type: ignore[arg-type]
    return finding


def test_reads_and_writes_of_the_measured_interval_are_counted() -> None:
    found = summarise_io_per_mailbox(STEERED, io(reads=1_000, read_ms=8.0), None)
    assert found and found.iops_each == pytest.approx((1_000 + 4_021) / 60 / 200) and found.read_ms == 8.0
    assert summarise_io_per_mailbox(None, io(), None) is None


def test_what_timers_read_is_not_counted() -> None:
    transactions = [Transaction(name="read", source="users"), Transaction(name="scan", source="timer")]
    own = {name: {"sampled": np.full(60, 3.0), "reads": np.full(60, 90.0)} for name in ("read", "scan")}
    ended = {name: np.full(60, 4.0) for name in ("committed", "rolled_back", "failed")}
    ended |= {"rolled_back": np.zeros(60), "failed": np.zeros(60)}
    load, interval = Load(60, counts={"scan": ended, "read": ended}, own_io=own), Interval(0, 0, 60, 60.0, False)
    assert apart_iops(load, transactions, interval) == pytest.approx(120)
    assert apart_iops(Load(60), transactions, interval) is None
    found = summarise_io_per_mailbox(STEERED, io(reads=10_000, read_ms=8.0), 120.0)
    assert found and found.iops_each == pytest.approx((14_021 / 60 - 120) / 200) and found.apart_iops == 120.0


def test_io_per_mailbox_that_were_reached() -> None:
    finding = judged({"iops_each": 0.118, "read_ms": 8.0})
    assert finding.kind is IoPerMailboxKind.REACHED and finding.severity == "info"
    assert (finding.facts["mailboxes"], finding.facts["iops_each"], finding.facts["read_ms"]) == (200, 0.118, 8.0)


def test_a_limit_tells_how_many_mailboxes_are_within_it() -> None:
    finding = judged({"outcome": "limit", "iops_each": 0.09, "read_ms": 19.0})
    assert finding.kind is IoPerMailboxKind.LIMIT and finding.facts["held"] == 150


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"outcome": "limit", "iops_each": 0.09, "read_ms": 21.0}, IoPerMailboxKind.TOO_SLOW),
        ({"outcome": "reached", "iops_each": 0.12, "read_ms": 21.0}, IoPerMailboxKind.TOO_SLOW),
        ({"outcome": "limit", "iops_each": 0.09, "read_ms": None}, IoPerMailboxKind.MISSED),
        ({"outcome": "unserved", "iops_each": 0.05, "read_ms": 3.0}, IoPerMailboxKind.UNSERVED),
        ({"outcome": "alone", "iops_each": 0.20, "read_ms": 3.0}, IoPerMailboxKind.ALONE),
        ({"outcome": "time", "iops_each": 0.05, "read_ms": 3.0}, IoPerMailboxKind.MISSED),
        ({"outcome": "reached", "iops_each": 0.20, "read_ms": 3.0}, IoPerMailboxKind.MISSED),
        ({"outcome": "limit", "iops_each": None, "read_ms": None}, IoPerMailboxKind.NOT_COUNTED),
    ],
)
def test_nothing_else_tells_how_many_mailboxes_would_be_carried(given: dict[str, Any], kind: IoPerMailboxKind) -> None:
    finding = judged(given)
    assert finding.kind is kind and finding.severity == "caution" and "held" not in finding.facts


def test_what_was_measured_counts_and_not_how_steering_ended() -> None:
    assert judged({"outcome": "time", "iops_each": 0.12, "read_ms": 8.0}).kind is IoPerMailboxKind.REACHED
    assert judged({"outcome": "limit", "iops_each": 0.12, "read_ms": 19.0}).kind is IoPerMailboxKind.REACHED


def test_repeats_are_said_together_and_the_worst_of_them_decides() -> None:
    good, slow = {"iops_each": 0.12, "read_ms": 8.0}, {"iops_each": 0.12, "read_ms": 24.0}
    both = judged(good, {"iops_each": 0.126, "read_ms": 10.0})
    assert both.kind is IoPerMailboxKind.REACHED and both.facts["read_ms"] == 9.0 and both.facts["runs"] == 2
    assert judged(good, slow).kind is IoPerMailboxKind.TOO_SLOW
    edge = {"outcome": "limit", "read_ms": 19.0}
    assert judged({"iops_each": 0.09, **edge}, {"iops_each": 0.06, **edge}).facts["held"] == 100


def test_a_step_that_was_not_steered_says_nothing(steady) -> None:
    step = only_step(steady)
    assert step.io_per_mailbox is None and list(io_per_mailbox([Point((step,))])) == []

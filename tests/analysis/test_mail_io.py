"""The I/Os of a mail store as mailboxes: which are counted, and of which steps they are shown."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.report_summaries import io
from support.synthetic_steps import only_step, steady

from stallmark.analysis.ceiling import mailboxes_of_ceilings, mailboxes_of_steps
from stallmark.analysis.points import Point
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.io import MailIo, summarise_mail_io, timer_iops
from stallmark.analysis.read.throughput import Load
from stallmark.record.manifest.workload import Transaction

__all__ = ["steady"]


def point(*seen: MailIo | None, step: str = "20 users") -> Any:
    return Point(tuple(SimpleNamespace(variant="mail", step=step, mail_io=one) for one in seen))  # type: ignore[misc]


def test_reads_and_writes_of_the_measured_interval_are_counted() -> None:
    found = summarise_mail_io(io(reads=1_000, read_ms=8.0), None)
    assert found and found.iops == pytest.approx((1_000 + 4_021) / 60) and found.read_ms == 8.0
    assert found.mailboxes == int((1_000 + 4_021) / 60 / 0.12)
    assert summarise_mail_io(None, None) is None


def test_what_timers_read_is_not_counted() -> None:
    transactions = [Transaction(name="read", source="users"), Transaction(name="scan", source="timer")]
    own = {name: {"sampled": np.full(60, 3.0), "reads": np.full(60, 90.0)} for name in ("read", "scan")}
    ended = {name: np.full(60, 4.0) for name in ("committed", "rolled_back", "failed")}
    ended |= {"rolled_back": np.zeros(60), "failed": np.zeros(60)}
    load, interval = Load(60, counts={"scan": ended, "read": ended}, own_io=own), Interval(0, 0, 60, 60.0, False)
    assert timer_iops(load, transactions, interval) == pytest.approx(120)
    assert timer_iops(Load(60), transactions, interval) is None
    found = summarise_mail_io(io(reads=10_000, read_ms=8.0), 120.0)
    assert found and found.iops == pytest.approx(14_021 / 60 - 120) and found.apart_iops == 120.0


def test_repeats_are_shown_together_and_one_that_was_not_counted_hides_them() -> None:
    one, other = MailIo(24.0, 200, 8.0, 100.0), MailIo(36.0, 300, 12.0, None)
    [finding] = mailboxes_of_steps([point(one, other)])
    assert (finding.facts["iops"], finding.facts["mailboxes"], finding.facts["measured"]) == (30.0, 250, 2)
    assert finding.facts["read_ms"] == 10.0 and finding.facts["apart_iops"] is None
    assert finding.facts["step"] is None
    assert list(mailboxes_of_steps([point(one, None)])) == []


def test_of_several_steps_each_is_named() -> None:
    one = MailIo(24.0, 200, None, None)
    found = list(mailboxes_of_steps([point(one), point(one, step="40 users")]))
    assert [finding.facts["step"] for finding in found] == ["20 users", "40 users"]
    assert found[0].facts["read_ms"] is None


def test_of_a_ceiling_it_is_the_level_that_held() -> None:
    levels = {5.0: [SimpleNamespace(mail_io=MailIo(24.0, 200, 8.0, None))], 9.0: [SimpleNamespace(mail_io=None)]}
    ceiling = SimpleNamespace(variant="mail", holds=5.0, steps_at=levels.__getitem__)
    [finding] = mailboxes_of_ceilings([ceiling])  # type: ignore[list-item]
    assert (finding.facts["mailboxes"], finding.facts["step"]) == (200, None)
    none = SimpleNamespace(variant="mail", holds=None, steps_at=levels.__getitem__)
    assert list(mailboxes_of_ceilings([none])) == []  # type: ignore[list-item]


def test_another_workload_has_no_mailboxes(steady) -> None:
    step = only_step(steady)
    assert step.mail_io is None and list(mailboxes_of_steps([Point((step,))])) == []

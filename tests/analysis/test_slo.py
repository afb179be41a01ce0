"""Service levels of reads: by the percentile where it is known, else by the mean, and never without saying which."""

import pytest

from stallmark.analysis.finding import Finding, caution
from stallmark.analysis.read.io_latency import IoLatencySummary
from stallmark.analysis.read.server_summary import IoSummary
from stallmark.analysis.read.times import ReadKind
from stallmark.analysis.service_level import READY_MADE, ServiceLevelKind, judge_reads, make_objective

OLTP = make_objective("oltp", None, "p95")


def files(read_ms: float | None, reads: int = 5000) -> IoSummary:
    return IoSummary("server", 60.0, reads, reads * 8192, read_ms, read_ms, 0, 0, None, None, None, None)


def histogram(p95: float | None, p99: float | None = None, doubt: Finding | None = None, ios: int = 4000):
    return IoLatencySummary("read", ios, 1.0, 1.0, {"p95": p95, "p99": p99}, doubt)


def test_without_a_service_level_nothing_is_judged():
    assert judge_reads(None, [histogram(5)], files(3)) is None


@pytest.mark.parametrize(
    ("p95", "outcome", "ideal"), [(9, "met", True), (10, "met", True), (20, "met", False), (21, "not_met", False)]
)
def test_the_percentile_is_held_against_the_limit(p95, outcome, ideal):
    found = judge_reads(OLTP, [histogram(p95)], files(3))
    assert (found.outcome, found.ideal_met, found.figure, found.figure_ms) == (outcome, ideal, "p95", p95)
    assert found.reads == 4000 and found.finding.facts["why"] is None


def test_the_mean_may_hide_what_the_percentile_shows():
    assert judge_reads(OLTP, [], files(15)).outcome == "mean_only"
    assert judge_reads(OLTP, [histogram(60)], files(15)).outcome == "not_met"


@pytest.mark.parametrize(
    ("kept", "why"),
    [
        ([], ServiceLevelKind.NO_HISTOGRAM),
        ([histogram(None, ios=150)], ServiceLevelKind.TOO_FEW_READS),
        ([histogram(None, doubt=caution(ReadKind.HISTOGRAM_FULL))], ReadKind.HISTOGRAM_FULL),
    ],
)
def test_a_mean_is_called_a_mean_and_why(kept, why):
    found = judge_reads(OLTP, kept, files(7))
    assert (found.outcome, found.figure, found.figure_ms, found.reads) == ("mean_only", "mean_only", 7, 5000)
    assert found.ideal_met is None, "7 ms are within the ideal, but they are a mean"
    assert found.finding.facts["why"].kind == why


def test_a_mean_above_the_limit_does_not_meet_it():
    assert judge_reads(OLTP, [], files(21)).outcome == "not_met"
    assert judge_reads(OLTP, [], files(15)).ideal_met is False


@pytest.mark.parametrize("data", [None, files(None, reads=0)])
def test_what_was_not_read_is_not_known(data):
    found = judge_reads(OLTP, [], data)
    assert (found.outcome, found.figure_ms, found.ideal_met) == ("not_known", None, None)
    assert found.finding.kind == ServiceLevelKind.READS_NOT_KNOWN


def test_a_limit_of_ones_own_has_its_percentile_and_no_ideal():
    level = make_objective(None, 5.0, "p99")
    found = judge_reads(level, [histogram(2, p99=6)], files(1))
    assert (found.outcome, found.percentile, found.limit_ms, found.ideal_ms) == ("not_met", "p99", 5, None)


def test_the_guidelines_are_those_of_the_paper():
    assert {name: limit.read_ms for name, limit in READY_MADE.items()} == {"oltp": 20, "dss": 30, "mail": 20}
    assert READY_MADE["oltp"].ideal_ms == 10

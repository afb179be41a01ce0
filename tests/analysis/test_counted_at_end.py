"""The caution on servers that count a session's I/O when its transaction ends: only if that moves much of it."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.report_summaries import manifest, run, step

from stallmark.analysis.cautions import CautionKind, cautions
from stallmark.analysis.read.queries import StreamQuerySummary, StreamsSummary
from stallmark.analysis.step_summary import StepSummary


def counted_at_end(one: StepSummary, product: str = "PostgreSQL") -> list[float]:
    made = manifest([one])
    seen = cautions([run([one], manifest=made.changed(server=made.server.changed(product=product)))])
    return [caution.facts["longest_s"] for caution in seen if caution.kind is CautionKind.COUNTED_AT_END]


def with_transactions(users: int, mean_ms: float | None, **more) -> StepSummary:
    one = step(users=users, **more)
    interval = replace(one.interval, measured_s=30.0)
    return replace(one, interval=interval, latency=replace(one.latency, mean_ms=mean_ms))


def with_streams(streams: int, seconds: float) -> StepSummary:
    queries = [StreamQuerySummary("q1", 5, seconds), StreamQuerySummary("q6", 9, seconds / 10)]
    return with_transactions(0, None, streams=StreamsSummary(streams, 14, 0, 700.0, queries))


def test_queries_as_long_as_half_the_interval_are_named():
    assert counted_at_end(with_streams(1, 15.0)) == [15.0]
    assert counted_at_end(with_streams(4, 15.0)) == [15.0]


def test_short_queries_and_those_of_many_streams_are_not():
    assert counted_at_end(with_streams(1, 1.0)) == counted_at_end(with_streams(100, 14.0)) == []


def test_transactions_of_one_slow_user_are_named_and_those_of_many_are_not():
    assert counted_at_end(with_transactions(1, 3_000.0)) == [3.0]
    assert counted_at_end(with_transactions(64, 3_000.0)) == []
    assert counted_at_end(with_transactions(30, None)) == []


def test_a_server_that_counts_at_once_is_not_accused():
    assert counted_at_end(with_streams(1, 15.0), product="SQL Server") == []


def test_a_step_without_counts_has_none_that_could_be_misplaced():
    one = with_streams(1, 15.0)
    assert counted_at_end(replace(one, storage=replace(one.storage, data=None))) == []


@given(st.integers(1, 200), st.floats(1.0, 60_000.0))
def test_it_takes_a_twentieth_of_the_interval_by_one_user_at_least(users, mean_ms):
    assert bool(counted_at_end(with_transactions(users, mean_ms))) == (mean_ms / 30_000 / users**0.5 > 0.05)


@pytest.mark.parametrize("streams", [1, 2, 8])
def test_more_streams_need_longer_queries(streams):
    least = 0.05 * 30.0 * streams**0.5
    assert counted_at_end(with_streams(streams, least * 1.01)) and not counted_at_end(with_streams(streams, least))

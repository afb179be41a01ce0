"""The caution on read times of a server that begins reads ahead: only where they may be less than the reads took."""

from dataclasses import replace

import pytest
from support.report_summaries import io, manifest, run, step

from stallmark.analysis.cautions import CautionKind, cautions


def ahead(method: str | None, server_ms: float | None, device_ms: float | None) -> list[float | None]:
    """Return the facts of the caution on a run with these times of a read."""
    one = step()
    device = None if device_ms is None else io(read_ms=device_ms, source="device")
    one = replace(one, storage=replace(one.storage, data=io(read_ms=server_ms), data_device=device))
    made = manifest([one])
    settings = {} if method is None else {"io_method": method}
    seen = cautions([run([one], manifest=made.changed(server=made.server.changed(settings=settings)))])
    return [caution.facts["times"] for caution in seen if caution.kind is CautionKind.READS_AHEAD]


@pytest.mark.parametrize("method", ["worker", "io_uring"])
def test_a_device_that_took_longer_than_the_server_waited_is_named(method):
    assert ahead(method, 0.74, 2.19) == [pytest.approx(2.19 / 0.74)]
    assert ahead(method, 0.74, None) == [None]


@pytest.mark.parametrize("method", ["sync", None])
def test_sessions_that_read_by_themselves_wait_for_all_of_it(method):
    assert ahead(method, 0.74, 2.19) == ahead(method, 0.74, None) == []


def test_times_that_agree_with_the_device_are_of_whole_reads():
    assert ahead("worker", 2.2, 2.19) == ahead("worker", 2.19, 2.2) == []


def test_a_server_without_times_is_not_accused():
    assert ahead("worker", None, 2.19) == []

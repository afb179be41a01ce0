"""Raw loads of a scenario: what may be asked for, and what is told otherwise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from stallmark.scenarios.load import MOST_AT_ONCE, RawLoad
from stallmark.storage.probe import LEAST_BYTES
from stallmark.storage.probe.patterns import NAMES, WEB, find_pattern, with_least_block
from stallmark.storage.raw_load.arrivals import MOST_PER_S


def refusal(**keys) -> str:
    with pytest.raises(ValidationError) as refused:
        RawLoad(**keys)
    return str(refused.value.errors()[0]["ctx"]["error"])


def test_a_scan_is_one_stream_of_large_blocks_as_fast_as_it_goes():
    plan = RawLoad(raw="scan").plan()
    assert (plan.pattern, plan.order, plan.operation) == ("256k-sequential-read", "sequential", "read")
    assert (plan.blocks, plan.outstanding, plan.size_bytes) == ({262_144: 1.0}, 1, 2**30)
    assert (plan.rate_iops, plan.rate_bytes, plan.folder) == (None, None, None)


def test_streams_are_the_outstanding_ios_of_a_scan():
    assert RawLoad(raw="scan", streams=4).plan().outstanding == 4
    assert RawLoad(raw="scan", outstanding=4).plan().outstanding == 4
    assert "write one of them" in refusal(raw="scan", outstanding=4, streams=4)
    assert "write outstanding" in refusal(raw="web", streams=4)


def test_a_rate_is_of_ios_or_of_bytes():
    arriving = RawLoad(raw="web", rate="200/s").plan()
    assert (arriving.rate_iops, arriving.rate_bytes, arriving.outstanding) == (200, None, MOST_AT_ONCE)
    flowing = RawLoad(raw="scan", rate="100 MB/s").plan()
    assert (flowing.rate_iops, flowing.rate_bytes, flowing.outstanding) == (None, 100_000_000, 1)


def test_a_rate_that_one_program_cannot_make_on_time_is_refused():
    assert RawLoad(raw="web", rate=f"{MOST_PER_S}/s").plan().rate_iops == MOST_PER_S
    assert "write several" in refusal(raw="web", rate=f"{MOST_PER_S + 1}/s")
    assert RawLoad(raw="scan", rate="9000 MB/s").plan().rate_bytes == 9e9


def test_ios_in_order_are_offered_the_same_rate_in_bytes():
    said = refusal(raw="scan", rate="200/s")
    assert RawLoad(raw="scan", rate=said.rpartition("rate: ")[2]).plan().rate_bytes == 200 * 262_144


@pytest.mark.parametrize(
    ("written", "meant"), [("skan", "scan"), ("8k-random-reads", "8k-random-read"), ("webb", "web")]
)
def test_an_unknown_pattern_is_told_the_nearest(written, meant):
    assert f"did you mean {meant}?" in refusal(raw=written)
    assert all(name in refusal(raw="?") for name in NAMES)


@pytest.mark.parametrize("rate", ["100", "/s", "0/s", "1.5/s", "-3/s", "nan/s", "200/second", "1 KB/s", "5 %/s", ""])
def test_no_rate_is_told_what_to_write(rate):
    assert "write" in refusal(raw="web", rate=rate)


def test_a_file_that_caches_hold_is_refused():
    with pytest.raises(ValidationError, match=str(LEAST_BYTES)):
        RawLoad(raw="web", size="1MiB")


@given(
    st.sampled_from(["web", "8k-random-write"]),
    st.none() | st.integers(1, MOST_PER_S).map("{}/s".format) | st.integers(1, 10**5).map("{} MB/s".format),
    st.integers(32, 10**6).map("{}MiB".format),
    st.none() | st.integers(1, 256),
)
def test_a_load_survives_being_written_and_read(raw, rate, size, outstanding):
    load = RawLoad(raw=raw, rate=rate, size=size, outstanding=outstanding)
    assert RawLoad(**load.model_dump(mode="json")) == load


def test_a_web_server_reads_all_shares():
    assert sum(WEB.blocks.values()) == pytest.approx(1) and min(WEB.blocks) == 512 and max(WEB.blocks) == 2**19


@given(st.sampled_from([512, 1024, 4096, 8192]))
def test_sizes_below_a_sector_are_rounded_up_to_it(sector):
    rounded = with_least_block(WEB.blocks, sector)
    assert min(rounded) == sector and sum(rounded.values()) == pytest.approx(1)
    assert rounded[sector] == pytest.approx(sum(share for size, share in WEB.blocks.items() if size <= sector))
    assert all(rounded[size] == share for size, share in WEB.blocks.items() if size > sector)


def test_an_alias_is_the_pattern():
    assert find_pattern("scan") is find_pattern("256k-sequential-read")

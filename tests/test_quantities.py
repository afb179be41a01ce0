"""Sizes, shares and durations as people write them."""

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from stallmark.quantities import IoRate, Pool, PoolSize, Rate, Seconds, Size, SizeOrZero, write_duration

POOL = TypeAdapter(Pool)
SECONDS = TypeAdapter(Seconds)
RATE = TypeAdapter(Rate)
SIZE, SIZE_OR_ZERO = TypeAdapter(Size), TypeAdapter(SizeOrZero)


@given(st.integers(1, 2**45))
def test_a_size_survives_being_written_and_read(size):
    pool = PoolSize(size_bytes=size)
    assert POOL.validate_python(POOL.dump_python(pool)) == pool


@given(st.integers(1, 10_000_000))
def test_a_share_survives_being_written_and_read(millionths):
    written = POOL.dump_python(PoolSize(share=millionths / 1e6))
    assert POOL.validate_python(written).share == pytest.approx(millionths / 1e6, rel=1e-12)


@given(
    st.integers(1, 10**6).map(lambda n: IoRate(ios_per_s=n))
    | st.integers(1, 10**6).map(lambda n: IoRate(bytes_per_s=n * 10**6))
)
def test_a_rate_survives_being_written_and_read(rate):
    assert RATE.validate_python(RATE.dump_python(rate)) == rate


@given(st.integers(0, 10**9))
def test_a_duration_survives_being_written_and_read(milliseconds):
    assert SECONDS.validate_python(write_duration(milliseconds / 1000)) == pytest.approx(milliseconds / 1000, rel=1e-12)


@given(st.floats(1e-4, 10), st.integers(1, 2**45))
def test_a_share_becomes_whole_mebibytes_and_never_fewer_bytes_than_asked(share, database_bytes):
    resolved = PoolSize(share=share).resolve(database_bytes)
    assert resolved % 2**20 == 0
    assert 0 <= resolved - int(share * database_bytes) < 2**20


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MiB", 64 * 2**20), ("2 GiB", 2 * 2**30), ("100MB", 10**8), ("1.5GiB", 3 * 2**29), ("9000B", 9000)],
)
def test_sizes(text, size):
    assert POOL.validate_python(text) == PoolSize(size_bytes=size)
    assert SIZE.validate_python(text) == SIZE_OR_ZERO.validate_python(text) == size


@pytest.mark.parametrize(("text", "share"), [("25 %", 0.25), ("25%", 0.25), ("120 %", 1.2), (" 0.5 % ", 0.005)])
def test_shares(text, share):
    assert POOL.validate_python(text).share == pytest.approx(share)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("500ms", 0.5), ("90s", 90), ("5min", 300), ("1h30m", 5400), ("1.5 min", 90), ("0s", 0), ("-2s", -2)],
)
def test_durations(text, seconds):
    assert SECONDS.validate_python(text) == seconds


@pytest.mark.parametrize(
    ("adapter", "value", "sentence"),
    [
        (POOL, 64, "64 has no unit: write 64MiB or 64 %"),
        (POOL, "1.5", "1.5 has no unit: write 1.5MiB or 1.5 %"),
        (POOL, "64MiX", "'64MiX' is not a size: write it as 64MiB, 2GiB or 25 %"),
        (POOL, "all of it", "'all of it' is not a size: write it as 64MiB, 2GiB or 25 %"),
        (POOL, "0MiB", "0MiB is not a size: write more than 0"),
        (POOL, "-1MiB", "is not a size"),
        (POOL, "0 %", "0 % is not a share of the data: write 1 % to 1000 %"),
        (POOL, "nan %", "nan % is not a share of the data: write 1 % to 1000 %"),
        (POOL, "many %", "'many %' is not a share: write it as 25 %"),
        (SIZE, "25 %", "25 % is a share, and of what is not known here"),
        (SIZE, 0, "0 has no unit"),
        (SIZE_OR_ZERO, "64", "64 has no unit: write 64MiB or 64GiB"),
        (SIZE_OR_ZERO, "25 %", "'25 %' is not a size: write it as 64MiB or 20GiB"),
        (SECONDS, 60, "60 has no unit: write 60s or 60min"),
        (SECONDS, "1e3", "1e3 has no unit: write 1e3s or 1e3min"),
        (SECONDS, "2 parsecs", "'2 parsecs' is not a duration: write it as 500ms, 90s, 5min or 1h30m"),
        (SECONDS, True, "'true' is not a duration"),
        (SECONDS, float("inf"), "'inf' is not a duration"),
        (SECONDS, "1:30", "'1:30' is not a duration"),
        (SECONDS, "", "'' is not a duration"),
        (SECONDS, ["90s", True, None], "'[90s, true, null]' is not a duration"),
        (POOL, {"from": "1GiB", "sizes": [1]}, "'{from: 1GiB, sizes: [1]}' is not a size"),
        (SIZE_OR_ZERO, {date(2026, 3, 2): {}}, "'{2026-03-02: {}}' is not a size"),
    ],
)
def test_what_cannot_be_read_is_answered_with_what_to_write(adapter, value, sentence):
    with pytest.raises(ValidationError) as refused:
        adapter.validate_python(value)
    assert sentence in str(refused.value)

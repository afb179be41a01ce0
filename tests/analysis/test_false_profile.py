"""Every kind of finding in a profile beside a profile of which its sentence would be false, and is not told.

A case gives the findings of two profiles that differ in one thing: with the first the kind is told, with the second, of
which its sentence would be false, it is not.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from support.profiles import AT, DATA, GIB, LENGTH, LOG, Row, write_made_profile

from stallmark.analysis.finding import Finding
from stallmark.analysis.profile import ProfileSummary, summarise_profile
from stallmark.analysis.profile_intervals import Samples, intervals_of, sample_times
from stallmark.analysis.profile_rates import ProfileKind
from stallmark.record.profile import ProfiledServer, Session, Source, Waited, read_profile, write_profile
from stallmark.record.profile_tables import SAMPLES
from stallmark.report.text import sentence

pytestmark = pytest.mark.thorough

DAY = 5760
"""The intervals of a day."""
SQL_SERVER, POSTGRESQL = (ProfiledServer(engine=engine) for engine in ("mssql", "postgresql"))
A, B = (ProfiledServer(name=name) for name in ("SQL-A", "SQL-B"))
WAITED = Waited("WRITELOG", "wal", 7200.0, 720_000.0)


def summary(
    count: int = 240,
    *,
    waits: Sequence[Waited] = (),
    longest_transaction_s: float | None = None,
    samples: Samples | None = None,
    source: Source = "perfmon",
    **options: Any,
) -> ProfileSummary:
    """The summary of a profile of `count` intervals, with what no imported one has."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        made = write_made_profile(Path(folder) / "p", count, **options)
        more = {"waits": waits, "longest_transaction_s": longest_transaction_s}
        intervals = replace(intervals_of(made), **more)
        write_profile(made, read_profile(made).changed(source=source))
        patch.setattr("stallmark.analysis.profile.intervals_of", lambda *_: intervals)
        patch.setattr("stallmark.analysis.profile.samples_of", lambda _: samples)
        return summarise_profile(made)


def told(count: int = 240, **options: Any) -> list[Finding]:
    found = summary(count, **options)
    return [*found.findings, *found.memory, *found.cautions]


def of_data(change: Callable[[int], Row], count: int = 240, **options: Any) -> list[Finding]:
    """Of a profile whose data files have these changes, by the number of the interval."""
    return told(count, file_io=lambda n: {"data": DATA | change(n), "log": LOG}, **options)


def with_bytes_from(first: int) -> list[Finding]:
    """The most I/Os from interval 60 on, the most bytes for as long from `first` on."""

    def change(n: int) -> Row:
        many = {"reads": 1500.0} if 60 <= n < 120 else {}
        return many | ({"read_bytes": 150 * 2.0**20} if first <= n < first + 60 else {})

    return of_data(change)


def with_writes(known: Callable[[int], bool]) -> list[Finding]:
    """Reads are known in the first half."""
    return of_data(
        lambda n: {"reads": DATA["reads"] if n < 120 else None, "writes": DATA["writes"] if known(n) else None}
    )


def growing(sized: int = 2881, **options: Any) -> list[Finding]:
    """Of half a day, in which the sizes of the first `sized` intervals are known."""
    return of_data(lambda n: {"size_bytes": 100 * GIB + n * 2**20 if n < sized else None}, 2881, **options)


def pooled(pool_bytes: float | None, **other: Row) -> list[Finding]:
    """Of 100 GiB of data files beside those of other classes."""
    return told(file_io=lambda n: {"data": DATA, **other}, server=lambda n: {"database_pages_bytes": pool_bytes})


def samples(
    start: Callable[[int], str] = lambda n: "08:00",
    server: Callable[[int], int] = lambda n: 1,
    ahead_s: Callable[[int], float] = lambda n: 0.0,
) -> Samples:
    """Samples of 240 intervals. `ahead_s`: by how much this machine's clock is ahead."""
    rows = [
        {
            "sample": n,
            "session": 1,
            "clock": AT.timestamp() + LENGTH * n + ahead_s(n),
            "monotonic_s": 1000.0 + LENGTH * n,
            "server_clock": AT.timestamp() + LENGTH * n,
            "start": start(n),
            "server": server(n),
        }
        for n in range(241)
    ]
    return sample_times(pa.Table.from_pylist(rows, SAMPLES), LENGTH)


def restarted(server: Callable[[int], int]) -> list[Finding]:
    """From the 120th sample on there is another time of start."""
    begun = samples(start=lambda n: "08:00" if n < 120 else "08:30", server=server)
    return told(left_out=[119], samples=begun, servers=(A, B))


def set_by(seconds: float) -> list[Finding]:
    return told(samples=samples(ahead_s=lambda n: seconds * (n >= 120)))


def collected(minutes: float) -> list[Finding]:
    ended = (AT + timedelta(minutes=minutes)).isoformat()
    return told(sessions=(Session(started=AT.isoformat(), ended=ended, end="complete", cpu_s=0.5),))


of_postgres = partial(told, source="server", servers=(POSTGRESQL,))
without_waits = partial(told, source="server", missing={"waits": "this role does not see the sessions of others"})


Case = Callable[[], list[Finding]]
CASES: dict[ProfileKind, tuple[Case, Case]] = {
    ProfileKind.BUSIEST: (told, lambda: told(40)),
    ProfileKind.OTHER_PEAK: (lambda: with_bytes_from(160), lambda: with_bytes_from(60)),
    ProfileKind.IO_MIX: (lambda: with_writes(lambda n: n < 120), lambda: with_writes(lambda n: n >= 120)),
    ProfileKind.WAITS: (
        lambda: told(waits=[WAITED], servers=(SQL_SERVER,)),
        lambda: told(waits=[WAITED], servers=(POSTGRESQL,)),
    ),
    ProfileKind.WAITS_MET: (
        lambda: told(waits=[WAITED], servers=(POSTGRESQL,)),
        lambda: told(waits=[WAITED], servers=(SQL_SERVER,)),
    ),
    ProfileKind.LOG: (told, lambda: told(file_io=lambda n: {"data": DATA, "log": LOG | {"writes": 0.0}})),
    ProfileKind.GROWTH: (growing, lambda: growing(240)),
    ProfileKind.NO_READS: (lambda: of_data(lambda n: {"reads": 3.0}), told),
    ProfileKind.READS_AT_MOST: (told, lambda: of_data(lambda n: {"reads": 3.0})),
    ProfileKind.POOL_TURNOVER: (lambda: pooled(20 * GIB), lambda: pooled(None)),
    ProfileKind.FITS: (lambda: pooled(120 * GIB), lambda: pooled(120 * GIB, other=DATA)),
    ProfileKind.MEMORY_NOT_KNOWN: (lambda: pooled(20 * GIB), lambda: pooled(120 * GIB)),
    ProfileKind.GAPS: (lambda: told(left_out=range(100, 103)), lambda: told(left_out=range(100, 102))),
    ProfileKind.LATE: (lambda: told(interval_s=5), lambda: told(interval_s=6)),
    ProfileKind.RESTARTS: (lambda: restarted(lambda n: 1), lambda: restarted(lambda n: 1 + (n >= 120))),
    ProfileKind.OTHER_SERVER: (lambda: told(servers=(A, B)), lambda: told(servers=(A, A.changed(cores=8)))),
    ProfileKind.CLOCK_SET: (lambda: set_by(60), lambda: set_by(3)),
    ProfileKind.LOST: (
        lambda: of_data(lambda n: {"writes": None} if n < 2 else {}),
        lambda: of_data(lambda n: {"size_bytes": None} if n < 2 else {}),
    ),
    ProfileKind.MISSING: (without_waits, lambda: without_waits(waits=[WAITED])),
    ProfileKind.SHORT: (told, lambda: told(DAY)),
    ProfileKind.COARSE: (lambda: told(1000, length=61), lambda: told(1000, length=60)),
    ProfileKind.CACHED_READS: (of_postgres, lambda: of_postgres(servers=(SQL_SERVER,))),
    ProfileKind.SAMPLED_WAITS: (lambda: of_postgres(waits=[WAITED]), of_postgres),
    ProfileKind.COUNTED_AT_END: (
        lambda: of_postgres(longest_transaction_s=3600.0),
        lambda: of_postgres(longest_transaction_s=30.0),
    ),
    ProfileKind.COST: (lambda: collected(60), lambda: collected(5)),
}


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in CASES])
def test_a_sentence_that_would_be_false_is_not_told(kind):
    true, false = ({finding.kind for finding in case()} for case in CASES[kind])
    assert kind in true and kind not in false


def facts(findings: Sequence[Finding], kind: ProfileKind) -> dict[str, Any]:
    return next(dict(finding.facts) for finding in findings if finding.kind is kind)


@pytest.mark.parametrize(("length", "count", "unknown"), [(300, 288, False), (600, 144, True), (600, 1, False)])
def test_a_busiest_window_that_samples_are_too_long_for_is_named(length, count, unknown):
    found = told(count, length=length)
    assert (facts(found, ProfileKind.COARSE)["window_s"] is not None) is unknown
    assert (ProfileKind.BUSIEST in {one.kind for one in found}) is (count > 1 and not unknown)


def test_all_of_a_profile_was_not_seen_if_there_was_a_gap():
    def seen(**options: Any) -> str:
        return next(sentence(one) for one in told(DAY, **options) if one.kind is ProfileKind.SEEN)

    assert "all of it was observed" in seen()
    assert "all of it was observed" not in seen(left_out=[100])  # 15 s of a day


def test_means_are_over_the_intervals_in_which_both_parts_are_known():
    """Times of reads are known of the second half, bytes of the first, writes of one minute."""

    def change(n: int) -> Row:
        unknown = {"read_stall_ms": None} if n < 120 else {"read_bytes": None}
        return unknown | ({} if n < 4 else {"writes": None})

    found = of_data(change)
    mix = facts(found, ProfileKind.IO_MIX)
    assert (mix["read_ms"], mix["read_kib"], mix["read_share"]) == pytest.approx((6, 8, 0.75))
    at_most = facts(found, ProfileKind.READS_AT_MOST)
    assert (at_most["reads_per_s"], at_most["waiting"]) == pytest.approx((10, 0.06))
    known_half = of_data(lambda n: {"reads": DATA["reads"] if n < 120 else None})
    assert facts(known_half, ProfileKind.READS_AT_MOST)["reads_per_s"] == pytest.approx(10)


def test_the_share_of_lookups_in_the_pool_is_of_one_time_and_never_below_none():
    def pages(read: float, since: int = 0) -> float | None:
        counts = lambda n: {"pages_read": read, "page_lookups": 1000.0 if n >= since else None}  # noqa: E731
        return facts(told(server=counts), ProfileKind.READS_AT_MOST)["found_share"]

    assert pages(100.0) == pages(100.0, since=120) == pytest.approx(0.9)
    assert pages(1500.0) is None


def test_the_files_of_another_server_have_not_grown():
    kinds = {one.kind for one in growing(servers=(A, B))}
    assert ProfileKind.GROWTH not in kinds and ProfileKind.OTHER_SERVER in kinds


def test_growth_is_over_the_time_between_the_sizes_that_are_known():
    growth = facts(of_data(lambda n: {"size_bytes": n * 2.0**20 if n < 3000 else None}, DAY), ProfileKind.GROWTH)
    assert growth["span_s"] == 2999 * LENGTH and growth["per_day_bytes"] == pytest.approx(DAY * 2**20)


@pytest.mark.parametrize(
    ("other", "engine", "fits"),
    [
        ({"tempdb": DATA}, SQL_SERVER, False),
        ({"tempdb": DATA}, POSTGRESQL, True),
        ({"tempdb": DATA | {"size_bytes": None}}, SQL_SERVER, False),
        ({"tempdb": DATA | {"size_bytes": GIB}}, SQL_SERVER, True),
        ({"log": DATA}, SQL_SERVER, True),
    ],
)
def test_data_fit_only_if_everything_fits_that_shares_the_pool(other, engine, fits):
    kinds = {
        one.kind
        for one in told(
            file_io=lambda n: {"data": DATA} | other,
            server=lambda n: {"database_pages_bytes": 120 * GIB},
            servers=(engine,),
        )
    }
    assert (ProfileKind.FITS in kinds, ProfileKind.MEMORY_NOT_KNOWN in kinds) == (fits, not fits)


def test_another_server_that_answers_is_not_seen_as_a_restart_and_its_time_is_named():
    begun = samples(start=lambda n: "08:00" if n < 120 else "08:30", server=lambda n: 1 + (n >= 120))
    [hole] = summary(left_out=[119], samples=begun, servers=(A, B)).unseen
    assert not hole.restart and hole.seconds == LENGTH
    upgraded = (A, A.changed(version="17"))
    [hole] = summary(left_out=[119], samples=begun, servers=upgraded).unseen
    assert hole.restart


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("data stalls", {"file_io": lambda n: {"data": DATA, "log": LOG | {"write_stall_ms": None}}}),
        ("log stalls", {}),
        ("log write_bytes", {}),
        ("size_bytes", {}),
        ("cpu_s", {"server": lambda n: {"cpu_s": 30.0 if n > 200 else None}}),
        ("server", {"server": lambda n: {"transactions": 30.0}}),
    ],
)
def test_what_came_to_be_known_later_is_not_missing(name, known):
    missing = {"missing": {name: "it may not be read"}}
    nothing = {"file_io": lambda n: {"data": {"reads": 150.0}, "log": {"reads": 0.0}}}
    for options, kinds in ((nothing, [ProfileKind.MISSING]), (known, [])):
        found = told(**({"source": "server"} | options | missing))
        assert [one.kind for one in found if one.kind is ProfileKind.MISSING] == kinds
    imported = told(**known, **missing)  # of a file some of what is named may be known, and not all
    assert ProfileKind.MISSING in {one.kind for one in imported}

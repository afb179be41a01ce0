"""diskspd, which never ran here: its command line, and its XML as its own source prints it (XmlResultParser.cpp)."""

from pathlib import Path

import pytest

from stallmark.errors import StallmarkError
from stallmark.record.manifest.storage import Asked
from stallmark.storage import fio
from stallmark.storage.fio import PATTERNS

READ, WRITE = PATTERNS["8k-random-read"], PATTERNS["256k-sequential-write"]
FILE = Path("probe.data")


def answer(ios: int = 1000, seconds: float = 10.0, verb: str = "Read", buckets: str = "") -> str:
    other = "Write" if verb == "Read" else "Read"
    percentiles = {"0": 1.0, **{str(p): 2.0 + p / 10 for p in range(1, 100)}, "99.9": 30.0, "99.99": 40.0, "100": 40.0}
    bins = "".join(
        f"<Bucket>\n<Percentile>{name}</Percentile>\n<{verb}Milliseconds>{ms:.3f}</{verb}Milliseconds>\n"
        f"<TotalMilliseconds>{ms:.3f}</TotalMilliseconds>\n</Bucket>\n"
        for name, ms in percentiles.items()
    )
    windows = "".join(
        f'<Bucket SampleMillisecond="{250 * n}" {verb}="{100 + n}" {other}="0" Total="{100 + n}"/>\n'
        for n in (1, 2, 41)
    )
    return f"""<Results>
<System><ComputerName></ComputerName></System>
<Profile><TimeSpans><TimeSpan><Duration>10</Duration></TimeSpan></TimeSpans></Profile>
<TimeSpan>
<TestTimeSeconds>{seconds:.2f}</TestTimeSeconds>
<ThreadCount>1</ThreadCount>
<Latency>
<Average{verb}Milliseconds>7.125</Average{verb}Milliseconds>
{bins}</Latency>
<Iops>
{windows}</Iops>
<Thread>
<Id>0</Id>
<Target>
<Path>probe.data</Path>
<BytesCount>{ios * 8192}</BytesCount>
<IOCount>{ios}</IOCount>
<{verb}Bytes>{ios * 8192}</{verb}Bytes>
<{verb}Count>{ios}</{verb}Count>
<{other}Bytes>0</{other}Bytes>
<{other}Count>0</{other}Count>
</Target>
</Thread>
</TimeSpan>
</Results>"""


def test_it_is_asked_as_sqlio_was():
    assert fio.diskspd_command("diskspd", FILE, 2**26, Asked(READ, 8), 10, 3) == [
        "diskspd", "-b8192", "-B1048576", "-f67108864", "-d10", "-W0", "-t1", "-o8", "-r8192", "-w0", "-z3", "-Su",
        "-L", "-D250", "-Rxml", "probe.data",
    ]  # fmt: skip
    writing = fio.diskspd_command("diskspd", FILE, 2**26, Asked(WRITE, 1), 0.4, 3)
    assert {"-s262144", "-w100", "-Zr", "-d1", "-t1", "-o1"} <= set(writing)


def test_in_order_is_a_stream_for_each():
    order = fio.diskspd_command("diskspd", FILE, 2**26, Asked(WRITE, 8), 10, 3)
    assert {"-t8", "-o1", "-s262144", f"-T{31 * 262144}"} <= set(order), "63 MiB behind the mark, in eight parts"


@pytest.mark.parametrize(("asked", "verb"), [(Asked(READ, 8), "Read"), (Asked(WRITE, 8), "Write")])
def test_its_answer_is_read(asked, verb):
    found = fio.parse_diskspd(asked, "diskspd says\n" + answer(verb=verb))
    assert (found.ios, found.seconds, found.mean_ms, found.bytes) == (1000, 10.0, 7.125, 8_192_000)
    assert sum(count for _, count in found.histogram) == 1000
    assert found.latency_ms == {"p50": 7.0, "p95": 12.0, "p99": 12.0, "p99.9": None, "max": 40.0}
    assert found.windows == ((0.25, 101.0), (0.5, 102.0)), "the third ends after the test"


def test_percentiles_finer_than_one_io_add_none():
    found = fio.parse_diskspd(Asked(READ, 1), answer(ios=3))
    assert sum(count for _, count in found.histogram) == 3


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "needs diskspd 2.0.20"),
        ("<Results></Results>", "needs diskspd 2.0.20"),
        ("<Results><TimeSpan><Error>The test was interrupted</Error></TimeSpan></Results>", "needs diskspd 2.0.20"),
        (answer(ios=0), "no I/O ended in time"),
    ],
)
def test_no_answer_is_a_sentence(text, sentence):
    with pytest.raises(StallmarkError, match=sentence):
        fio.parse_diskspd(Asked(READ, 8), text)

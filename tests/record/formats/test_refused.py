"""Files that are none of the formats, or are damaged: a sentence, and nothing is written."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support import recorders
from tests.support.recorders import Moment

from stallmark.errors import StallmarkError
from stallmark.record.formats import import_profile
from stallmark.record.formats.amounts import Wanted

pytestmark = pytest.mark.thorough

SAMPLES = Path(__file__).parent / "samples"
MOMENTS = [Moment(1772445600.0 + 15 * n, {"sda": (n * 30.0,) * 6, "sdb": (n * 60.0,) * 6}, n, n * 10) for n in range(5)]
WHOLE = [
    writer(MOMENTS).encode()
    for writer in (
        recorders.iostat_text, recorders.iostat_json, recorders.sadf_json, recorders.perfmon_csv,
        recorders.prometheus_json, recorders.open_csv,
    )
] + [(SAMPLES / name).read_bytes() for name in ("sadf.json", "influxdb_log.csv")]  # fmt: skip


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \r\n\r\n", "is empty"),
        (b"MZ\0\0\0binary", "is not text"),
        (b"hello\nworld\n", "No column of .* holds times: it takes"),
        (b"{}", "no format known"),
        (b'{"sysstat": {"hosts": []}}', "no samples"),
        (b"Linux 6.1.0 (vm) \t03/02/2026 \t_x86_64_\t(2 CPU)\n\nDevice r/s\nsda 1.00\n", "-t"),
        (b"Linux 6.1.0 (vm) \tMontag \t_x86_64_\t(2 CPU)\n\n10:00:01 CPU %user %idle\n", "`sadf -j FILE -- -b -d -u"),
        (b'"(PDH-CSV 4.0) (UTC)(0)"\r\n"03/02/2026 10:00:00.000"\r\n', "no counter"),
        (b'"(PDH-CSV 4.0) (UTC)(0)","\\\\H\\Memory\\Free"\r\n"03/02/2026 10:00:00.000","1"\r\n', "no counter"),
        (WHOLE[0][:500], "Two consecutive samples"),
    ],
)
def test_each_is_one_sentence(import_texts, tmp_path, content, said):
    with pytest.raises(StallmarkError, match=said) as caught:
        import_texts(content)
    assert "\n" not in str(caught.value) and not list(tmp_path.glob("profile*"))


def test_files_that_cannot_be_opened_and_folders_that_are_there(import_texts, tmp_path):
    with pytest.raises(StallmarkError, match="No such file"):
        import_texts(tmp_path / "none.csv")
    with pytest.raises(StallmarkError, match="cannot be read"):
        import_texts(tmp_path)
    (tmp_path / "there").mkdir()
    with pytest.raises(StallmarkError, match="exists already"):
        import_profile([SAMPLES / "sadf.json"], tmp_path / "there", Wanted())
    with pytest.raises(StallmarkError, match="No file"):
        import_profile([], tmp_path / "new", Wanted())


def test_local_times_need_a_zone_and_double_meanings_an_order(import_texts):
    with pytest.raises(StallmarkError, match="--timezone"):
        import_texts(SAMPLES / "iostat.txt", dates="month-first")
    text = (SAMPLES / "iostat.txt").read_text().replace("11/24/26", "11/04/26")
    with pytest.raises(StallmarkError, match="--dates"):
        import_texts(text, zone="UTC")
    with pytest.raises(StallmarkError, match="not day-first"):
        import_texts(SAMPLES / "iostat.txt", zone="UTC", dates="day-first")
    with pytest.raises(StallmarkError, match="not a time zone"):
        import_texts(SAMPLES / "iostat.txt", zone="Mars/Olympus", dates="month-first")


@settings(max_examples=150, deadline=None)
@given(whole=st.sampled_from(WHOLE), cut=st.floats(0, 1), at=st.floats(0, 1), noise=st.binary(max_size=12))
def test_what_is_cut_or_damaged_is_imported_or_refused_in_a_sentence(tmp_path_factory, whole, cut, at, noise):
    damaged = whole[: int(len(whole) * cut)]
    place = int(len(damaged) * at)
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "file").write_bytes(damaged[:place] + noise + damaged[place:])
    try:
        import_profile([folder / "file"], folder / "profile", Wanted(zone="UTC", dates="month-first"))
    except StallmarkError as error:
        assert "\n" not in str(error) and not (folder / "profile").exists()


ONE_LINE = "x" * (1 << 24)
REPORT = "03/02/2026 10:00:01 AM\nDevice r/s\nsda 1.00\n\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Linux 6.1.0 (vm) \t03/02/2026 \t_x86_64_\t(2 CPU)\n" + REPORT + ONE_LINE, "a line of more than 16,777,216"),
        ('{"sysstat": {"hosts": [{"statistics": [{"timestamp": "2026-03-02T10:00:00Z", ' + ONE_LINE, "is damaged"),
        ("Device r/s\n" + "".join(f"sd{number} 1.00\n" for number in range(2001)), "over 2,000 devices"),
        (recorders.prometheus_series(20_002), "20,000 series"),
    ],
    ids=["line", "object", "devices", "series"],
)
def test_what_would_take_all_memory_is_refused(import_texts, text, said):
    if text.startswith("Device"):
        text = f"Linux 6.1.0 (vm) \t03/02/2026 \t_x86_64_\t(2 CPU)\n{REPORT}03/02/2026 10:00:16 AM\n{text}\n"
    with pytest.raises(StallmarkError, match=said):
        import_texts(text, zone="UTC", dates="month-first")


def test_more_samples_than_are_held_are_refused(import_texts, monkeypatch):
    monkeypatch.setattr("stallmark.record.formats.amounts.MOST_SAMPLES", 3)
    with pytest.raises(StallmarkError, match="more than 3 samples"):
        import_texts(recorders.iostat_text(MOMENTS))


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a'; DROP TABLE x;--", "[red]sda[/]", "\u202esda", "é"])
def test_hostile_names_of_devices_are_names(import_texts, name):
    moments = [Moment(one.at, {name: one.devices["sda"]}) for one in MOMENTS]
    found = import_texts(recorders.prometheus_json(moments))
    assert sum(found.io("reads")) == 120


@pytest.mark.parametrize(
    "text",
    [
        "Linux 6.1.0 (vm) \t03/02/2026 \t_x86_64_\t(2 CPU)\n\n12:00:01 AM     CPU      %usr     %idle\n"
        "12:10:01 AM     all      1.00     99.00\n",
        "[root@db01 ~]# sar -d 2 222\nLinux 6.1.0 (vm) \t03/02/2026 \t_x86_64_\t(2 CPU)\n\n"
        "06:24:52 PM       DEV       tps     rkB/s\n06:24:54 PM       sda     24.50     10.00\n",
        "Linux 3.10.0 (db01) \t2026年03月02日 \t_x86_64_\t(8 CPU)\n\n00时00分01秒       DEV       tps  rd_sec/s\n",
        "# hostname;interval;timestamp;DEV;tps;rkB/s\ndb01;600;2026-03-02 00:10:01 CET;sda;10.00;100.00\n",
        "db01;600;2026-03-02 00:10:01 UTC;sda;10.00;100.00\n",
    ],
)
def test_text_of_sar_is_refused_with_the_command_that_writes_json(import_texts, text):
    with pytest.raises(
        StallmarkError, match=r"is text of .*: write its recording as JSON with `sadf -j FILE -- -b -d -u"
    ):
        import_texts(text)

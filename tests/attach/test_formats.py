"""Every format against published output of its tool; samples/SOURCES.md says where each is from."""

from datetime import UTC, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import measured as formats
from support.measured import Measured

from stallmark.attach.attach import Span, Wanted, align
from stallmark.errors import StallmarkError

SAMPLES = Path(__file__).parent / "samples"


def read(name: str, *counters: str, time_column: str | None = None) -> tuple[str, Measured]:
    return formats.read(Wanted(SAMPLES / name, counters, time_column))


def values(measured: Measured) -> dict[tuple[str, str], list[float]]:
    return {(one.counter, one.instance): one.values.tolist() for one in measured.series}


def written(tmp_path: Path, content: str | bytes, name: str = "file.csv") -> Path:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_typeperf():
    """An empty line before the header and two lines of talk at the end; no zone."""
    format, measured = read("typeperf_disk.csv")
    assert (format, measured.zone, measured.zone_said, measured.host) == ("perfmon", None, "", "GORANS2")
    assert list(measured.stamps) == [f"12/29/2020 18:34:{s}" for s in ("28.308", "38.338", "48.369", "58.401")]
    assert len(measured.series) == 12
    found = values(measured)
    assert found["PhysicalDisk Avg. Disk sec/Read", "0 C:"] == [0.000433, 0.0002, 0.000379, 0.001146]
    assert found["PhysicalDisk Avg. Disk sec/Read", "_Total"] == [0.000433, 0.0002, 0.000379, 0.001146]
    units = {one.counter.removeprefix("PhysicalDisk "): one.unit for one in measured.series}
    assert units["Avg. Disk sec/Read"] == "s" and units["Disk Bytes/sec"] == "B/s"
    assert units["Disk Transfers/sec"] == "1/s" and units["% Disk Time"] == "%"
    assert units["Avg. Disk Queue Length"] == ""


def test_perfmon_s_bias_is_minutes_west_of_utc():
    _, measured = read("perfmon_summer_time_ends.csv")
    assert measured.zone.utcoffset(None) == timedelta(hours=1)
    assert measured.zone_said == "bias -60 min, GMT Standard Time"
    assert values(measured)["% C2 Time", ""][0] == 88.359340674585567


@pytest.mark.parametrize(
    ("header", "hours"),
    [
        ("(PDH-CSV 4.0) (W. Europe Standard Time)(-60)", 1),
        ("(PDH-CSV 4.0) (Eastern Daylight Time)(240)", -4),
        ("(PDH-CSV 4.0) (Pacific Daylight Time)(420)", -7),
        ("(PDH-CSV 4.0) (Malay Peninsula Standard Time)(-480)", 8),
        ("(PDH-CSV 4.0) (UTC)(0)", 0),  # esxtop -b, too
    ],
)
def test_headers_seen_in_the_wild(tmp_path, header, hours):
    row = r'"11/21/2025 10:00:00.000","1"'
    path = written(tmp_path, f'"{header}","\\\\H\\Memory\\Available MBytes"\n{row}\n{row}\n')
    assert formats.read(Wanted(path))[1].zone.utcoffset(None) == timedelta(hours=hours)


def test_a_header_cut_at_an_apostrophe_has_no_zone_and_a_blank_no_value():
    _, measured = read("perfmon_cut_header.csv")
    assert measured.zone is None
    (series,) = measured.series
    assert series.at.tolist() == [0, 2] and series.values.tolist() == [0.000433, 0.000379]


def test_perfmon_s_comment_at_the_end_of_the_header_is_no_counter(tmp_path):
    text = '"(PDH-CSV 4.0) (UTC)(0)","\\\\H\\Memory\\Free","What, this collects"\n"11/21/2025 10:00:00.000","1"\n'
    (series,) = formats.read(Wanted(written(tmp_path, text)))[1].series
    assert (series.counter, series.host) == ("Memory Free", "H")


@pytest.mark.parametrize(
    ("path", "counter", "instance"),
    [
        (r"\\SQL01\PhysicalDisk(0 C: D:)\% Disk Time", "PhysicalDisk % Disk Time", "0 C: D:"),
        (r"\\SQL01\MSSQL$A:Databases(_Total)\Log Flushes/sec", "MSSQL$A:Databases Log Flushes/sec", "_Total"),
        (r"\\SQL01\Process(a(b)\c)\IO Read Bytes/sec", "Process IO Read Bytes/sec", r"a(b)\c"),
        (r"\\SQL01\Latches\Total Wait Time (ms)", "Latches Total Wait Time (ms)", ""),
        (r"\\SQL01\Network Interface(Card, 2)\Bytes Total/sec", "Network Interface Bytes Total/sec", "Card, 2"),
    ],
)  # fmt: skip
def test_counter_paths(tmp_path, path, counter, instance):
    text = f'"(PDH-CSV 4.0) (UTC)(0)","{path}"\n"11/21/2025 10:00:00.000","1.5"\n'
    (series,) = formats.read(Wanted(written(tmp_path, text)))[1].series
    assert (series.counter, series.instance, series.host) == (counter, instance, "SQL01")


def test_counters_of_another_language_have_their_english_names_and_units(tmp_path):
    path = r"\\H\Physikalischer Datenträger(0 C:)\Mittlere Sek./Lesevorgänge"
    text = f'"(PDH-CSV 4.0) (UTC)(0)","{path}"\r\n"11/21/2025 10:00:00.000","1"\r\n'
    (series,) = formats.read(Wanted(written(tmp_path, text.encode("cp1252"))))[1].series
    assert (series.counter, series.instance, series.unit) == ("PhysicalDisk Avg. Disk sec/Read", "0 C:", "s")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "cp1252"])
def test_encodings_of_windows(tmp_path, encoding):
    text = '"(PDH-CSV 4.0) (UTC)(0)","\\\\H\\Datenträger\\Länge"\r\n"11/21/2025 10:00:00.000","1"\r\n'
    (series,) = formats.read(Wanted(written(tmp_path, text.encode(encoding))))[1].series
    assert series.counter == "Datenträger Länge"


def test_iostat_that_was_killed():
    """The first report is not taken, and the last was not whole."""
    format, measured = read("iostat.json")
    assert (format, measured.zone, measured.host) == ("iostat", None, "my-hostname")
    assert list(measured.stamps) == ["03/23/2020 04:54:36 PM", "03/23/2020 04:54:37 PM"]
    found = values(measured)
    assert found["r_await", "nvme0n1"] == [1.26, 1.26] and found["rkB/s", "nvme0n1"] == [6917.31, 6917.31]
    assert {one.unit for one in measured.series if one.counter in ("rkB/s", "wkB/s")} == {"KiB/s"}
    assert "first report" in measured.notes[0]


def test_iostat_without_times_says_what_to_do():
    with pytest.raises(StallmarkError, match="has no times that can be read: run iostat with -t"):
        read("iostat_begins_with_comma.json")


def test_iostat_s_array_may_begin_with_a_comma(tmp_path):
    """As published, but with a time; and once more, because the first report is not taken."""
    text = (SAMPLES / "iostat_begins_with_comma.json").read_text()
    begin = text.index("[\n,") + 2
    end = text.index("\n                        ]\n                }")
    timed = text[begin:end].replace('"disk":', '"timestamp": "04/23/2019 10:00:03 AM", "disk":')
    path = written(tmp_path, text[:begin] + timed + timed + text[end:], "file.json")
    _, measured = formats.read(Wanted(path))
    assert values(measured)["r_await", "sdc"] == [38.03]


def test_a_counter_that_wrapped_is_no_value(tmp_path):
    """sysstat issue 312."""
    text = (SAMPLES / "iostat.json").read_text().replace('"r/s": 1267.27', '"r/s": 9223372036854775808.00')
    _, measured = formats.read(Wanted(written(tmp_path, text, "file.json")))
    assert ("r/s", "nvme0n1") not in values(measured) and ("w/s", "nvme0n1") in values(measured)


def test_sadf():
    format, measured = read("sadf.json")
    assert (format, measured.zone, measured.host) == ("sar", UTC, "SYSSTAT.TEST")
    found = values(measured)
    assert found["disk await", "sda"][:3] == [0.0, 1.0, 12.0]
    assert found["io io-reads rtps", ""][:2] == [12.83, 41.26]
    (sdr,) = [one for one in measured.series if (one.counter, one.instance) == ("disk tps", "sdr")]
    assert sdr.at.tolist() == [0, 1, 2, 3]  # it was gone after the restart
    assert measured.stamps[0] == "2019-04-18 13:20:19"


def test_older_sadf_says_utc_by_a_number_and_an_absurd_interval_first(tmp_path):
    first = '"date": "2015-07-16", "time": "07:00:01", "utc": 1, "interval": 184467440737095516'
    second = '"date": "2018-01-01", "time": "00:10:01", "utc": 1, "interval": 600'
    samples = [f'{{"timestamp": {{{when}}}, "io": {{"tps": 2}}}}' for when in (first, second)]
    path = written(tmp_path, '{"sysstat": {"hosts": [{"statistics": [' + ",".join(samples) + "]}]}}", "sa.json")
    format, measured = formats.read(Wanted(path))
    assert (format, measured.zone) == ("sar", UTC)
    assert list(measured.stamps) == ["2018-01-01 00:10:01"] and values(measured) == {("io tps", ""): [2.0]}


def test_sadf_in_local_time_names_a_zone_that_is_none(tmp_path):
    text = (SAMPLES / "sadf.json").read_text().replace('"tz": "UTC"', '"tz": "CEST"')
    _, measured = formats.read(Wanted(written(tmp_path, text, "sa.json")))
    assert (measured.zone, measured.zone_said) == (None, "CEST")


def test_an_array_s_csv_with_lines_before_its_header_and_a_row_per_volume():
    format, measured = read("svc_volumes.csv")
    assert format == "csv"
    assert list(measured.stamps) == ["2014:10:26T06:10:07.000000", "2014:10:26T06:20:09.000000"]
    found = values(measured)
    assert found["Read Response Time", "vio_1p_01"] == [0.424, 0.424]
    assert {one.unit for one in measured.series if one.counter.endswith("Response Time")} == {"ms"}
    assert {one.unit for one in measured.series if one.counter == "Total IO Rate"} == {"1/s"}
    assert {one.unit for one in measured.series if one.counter == "Total Data Rate"} == {"KB/s"}
    assert not any(counter in ("Interval", "Volume ID") for counter, _ in found)


def test_columns_of_text_are_left_out_and_said():
    """purearray writes 3.42K."""
    _, measured = read("purearray_monitor.csv")
    assert values(measured)["us/op (read)", ""] == [688.0, 654.0]
    assert {one.unit for one in measured.series} == {"us"}
    assert measured.notes == ["columns that hold text: op/s (read), B/s (read)"]


@pytest.mark.parametrize(
    "text",
    [
        "Date;Time;Latency [ms]\n21.11.2025;10:00:00;1,5\n21.11.2025;10:00:05;2,5\n",
        "Latency (ms)\twhen\n1.5\t2025-11-21 10:00:00\n2.5\t2025-11-21 10:00:05\n",
        'sampled at,"Latency (msec)"\n"Nov. header, not data",x\nepoch,Latency (ms)\n1763719200,1.5\n1763719205,2.5\n',
    ],
    ids=["date and time apart, decimal comma", "tabs, time last", "seconds since 1970"],
)
def test_other_csvs(tmp_path, text):
    _, measured = formats.read(Wanted(written(tmp_path, text)))
    (series,) = measured.series
    assert (series.counter.removesuffix(" "), series.unit) == ("Latency", "ms")
    np.testing.assert_array_equal(series.values, [1.5, 2.5])


def test_the_time_column_can_be_named(tmp_path):
    text = "created,sampled,ms\n2020-01-01 00:00:00,2025-11-21 10:00:00,1\n2020-01-01 00:00:00,2025-11-21 10:00:05,2\n"
    path = written(tmp_path, text)
    _, measured = formats.read(Wanted(path, time_column="Sampled"))
    assert list(measured.stamps) == ["2025-11-21 10:00:00", "2025-11-21 10:00:05"]
    with pytest.raises(StallmarkError, match=r"no times in a column when \(there is created, sampled, ms\)"):
        formats.read(Wanted(path, time_column="when"))


@pytest.mark.parametrize("pattern", ["sec/read", "PhysicalDisk(0 C:)*sec/Read", r"\\GORANS2\*0 C:*Disk sec/Read"])
def test_only_the_counters_asked_for(pattern):
    _, measured = read("typeperf_disk.csv", pattern)
    assert {one.counter for one in measured.series} == {"PhysicalDisk Avg. Disk sec/Read"}


@pytest.mark.parametrize("name", ["typeperf_disk.csv", "iostat.json", "sadf.json", "svc_volumes.csv"])
def test_counters_that_are_not_there(name):
    with pytest.raises(StallmarkError, match=r"No counter of .* matches page life or \[x\]: it has .+\.$"):
        read(name, "page life", "[x]")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("", "is empty"),
        ("   \n", "is empty"),
        ("just words\nand more\n", "No column of .* holds times"),
        ("a,b\n1,2\n", r"name it with --time-column \(there is a, b\)"),
        (b"\x07\0\0\0binary\0", "is not text: convert Perfmon's with `relog"),
        ('{"points": []}', "is in no format known here"),
        ("<xml/>", "is in no format known here"),
        ('{"sysstat": {"hosts": []}}', "it has no samples"),
        ('{"sysstat": {"hosts": [{"statistics": [', "no complete report"),
        ('"(PDH-CSV 4.0) (UTC)(0)","\\\\H\\Memory\\Free"\n', "holds no sample"),
        # As a newsgroup's answer has it, with a letter lost.
        ('"(PDH-CSV 4.0) (UTC)(0)","\\\\H\\M\\F"\n"09/08/2002 12:35:45.166","7.06e"\n', "is not a number"),
        ("time,v\n2025-11-21 10:00:00,1\n2025-11-21 10:00:00,1\n", "several rows of one time"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused_in_a_sentence(tmp_path, content, sentence):
    with pytest.raises(StallmarkError, match=sentence) as refused:
        formats.read(Wanted(written(tmp_path, content)))
    assert str(refused.value).endswith(".") and "\n" not in str(refused.value)


def test_a_format_that_is_said_is_not_guessed():
    with pytest.raises(StallmarkError, match="no times that can be read"):
        formats.read(Wanted(SAMPLES / "svc_volumes.csv"), "iostat")


def test_a_csv_that_is_too_large_to_be_held_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("stallmark.record.formats.open_csv._LARGEST", 10)
    with pytest.raises(StallmarkError, match="more than 10 characters"):
        formats.read(Wanted(SAMPLES / "svc_volumes.csv"))


def test_a_row_that_is_cut_within_a_quote_is_left_out(tmp_path):
    begun = '"(PDH-CSV 4.0) (UTC)(0)","\\\\M\\% C2 Time"\n"10/29/2017 01:59:44.562","88.3"\n'
    measured = formats.read(Wanted(written(tmp_path, f'{begun}"10/29/2017 01:59:59.562","93.7\n')))[1]
    assert len(measured.stamps) == 1 and measured.notes == ["rows with too few or too many values: 1"]


IMPORTED = Path(__file__).parents[1] / "record/formats/samples"


def test_text_of_iostat_is_read_as_its_json_is():
    """Of the same machine at the same time; the text has CPU times as well."""
    (format, text), (_, objects) = (formats.read(Wanted(IMPORTED / f"iostat.{end}")) for end in ("txt", "json"))
    assert (format, text.host, len(text.stamps)) == ("iostat", objects.host, len(objects.stamps))
    units = {(one.counter, one.instance): one.unit for one in text.series}
    for one in objects.series:
        assert units[one.counter, one.instance] == one.unit
    assert units["avg-cpu idle", ""] == "%" and units["r_await", "vda"] == "ms"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("# hostname;interval;timestamp;DEV;tps\nh;600;2026-03-02 00:10:01 UTC;sda;1\n", "`sadf -j "),
        ('{"status":"success","data":{"resultType":"matrix","result":[]}}', "holds totals of Prometheus"),
    ],
)
def test_what_has_another_form_is_refused_with_it(tmp_path, content, words):
    with pytest.raises(StallmarkError, match=words):
        formats.read(Wanted(written(tmp_path, content)))


WHOLE = [path.read_bytes() for path in sorted(SAMPLES.iterdir()) if path.suffix != ".md"]
NOISE = st.binary(max_size=12) | st.sampled_from([b"1" * 5000, b"[" * 3000, b"null", b"1e999", b"NaN", b'"', b"\r"])


@pytest.mark.thorough
@settings(max_examples=150, deadline=None)
@given(whole=st.sampled_from(WHOLE), cut=st.floats(0.2, 1), at=st.floats(0, 1), gone=st.integers(0, 20), noise=NOISE)
def test_what_is_cut_or_damaged_is_read_or_refused_in_a_sentence(tmp_path_factory, whole, cut, at, gone, noise):
    damaged = whole[: int(len(whole) * cut)]
    place = int(len(damaged) * at)
    file = tmp_path_factory.mktemp("damaged") / "file"
    file.write_bytes(damaged[:place] + noise + damaged[place + gone :])
    try:
        measured = formats.read(Wanted(file))[1]
        align(measured.stamps, measured.file, "UTC", 0.0, [Span(0, 4e9)])
    except StallmarkError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_perfmon_of_another_language_has_decimal_commas(tmp_path, delimiter):
    """As `profile --from` reads it. A program for tables separates by semicolons where numbers have
    commas."""
    rows = (("11/21/2025 10:00:00.000", "0,004311"), ("11/21/2025 10:00:15.000", "1,5E-03"))
    lines = [("(PDH-CSV 4.0) (UTC)(0)", r"\\H\PhysicalDisk(0 C:)\Avg. Disk sec/Read"), *rows]
    text = "\n".join(delimiter.join(f'"{cell}"' for cell in line) for line in lines)
    (series,) = formats.read(Wanted(written(tmp_path, text + "\nDer Befehl wurde ausgeführt.\n")))[1].series
    assert list(series.values) == [0.004311, 0.0015]


def test_rows_of_perfmon_that_are_cut_are_counted(tmp_path):
    text = '"(PDH-CSV 4.0) (UTC)(0)","\\\\H\\M\\F","\\\\H\\M\\G"\n' + "".join(
        f'"11/21/2025 10:00:0{n}.000","{n}"{cell}\n' for n, cell in enumerate([',"1"', "", ',"1"'])
    )
    measured = formats.read(Wanted(written(tmp_path, text)))[1]
    assert len(measured.stamps) == 2 and measured.notes == ["rows with too few or too many values: 1"]

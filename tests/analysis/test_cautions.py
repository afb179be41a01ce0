"""The cautions on runs, in the cases in which a reader needs them and in those in which not."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.comparisons import made, template, with_manifest
from support.findings import kinds_of
from support.manifests import changed, on
from support.report_summaries import VDA, io, manifest, run, step
from support.synthetic import Truth, make_run
from support.synthetic_steps import WAITS

from stallmark.analysis.cautions import CautionKind, cautions
from stallmark.analysis.compare.settings import StorageKind, folders_on_one_disk
from stallmark.analysis.environment_cautions import AboveKind, ArrayKind, above_device, array_cautions
from stallmark.analysis.experiment import summarise
from stallmark.analysis.read.queries import StreamQuerySummary, StreamsSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.reader import Record

# The caution on servers that count a session's I/O when its transaction ends: only if that moves much of it.


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


# The caution on read times of a server that begins reads ahead: only where they may be less than the reads took.


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


# The caution on time in storage above the device: said of the steps it is true of, with the limits on their server.


REAL = {"name": "vda", "model": None, "rotational": True}
IN_DEVICE = Truth(read_ms=27, waits=WAITS, emulated=False, device=REAL, variant="A")
ABOVE = replace(IN_DEVICE, device_share=0.1, variant="B", sequence=2)
LIMIT = {"limited": "reads", "per_s": 1500, "file": "/sys/fs/cgroup/db/io.max"}


def cautions_on(*folders):
    runs = summarise([Record(folder) for folder in folders]).runs
    return [finding.facts for finding in above_device(runs)]


@pytest.mark.thorough
def test_steps_above_the_device_are_named_with_the_limits_on_their_server(tmp_path):
    a, b = make_run(tmp_path / "a", IN_DEVICE), make_run(tmp_path / "b", ABOVE)
    changed(b, devices={"data": {**REAL, "limits": [LIMIT]}})
    [facts] = cautions_on(a, b)
    assert facts["steps"] == ["B"] and facts["limits"] == [LIMIT]
    assert facts["share"] == pytest.approx([0.9, 0.9], abs=0.05)


@pytest.mark.thorough
def test_the_limit_that_steps_waited_for_most_comes_first(tmp_path):
    least = make_run(tmp_path / "a", replace(ABOVE, device_share=0.4, variant="A", sequence=1))
    most = make_run(tmp_path / "b", ABOVE)
    changed(most, devices={"data": {**REAL, "limits": [LIMIT]}})
    assert [facts["steps"] for facts in cautions_on(least, most)] == [["B"], ["A"]]


@pytest.mark.thorough
def test_no_step_is_named_whose_time_was_in_the_device_or_at_a_cpu(tmp_path):
    waited = replace(ABOVE, run_delay=25, host_cpu=0.75)
    little = replace(ABOVE, waits={name: share / 8 for name, share in WAITS.items()})
    for number, truth in enumerate((IN_DEVICE, waited, little)):
        assert cautions_on(make_run(tmp_path / str(number), truth)) == []


def test_every_step_is_said_only_if_all_are(tmp_path):
    [facts] = cautions_on(make_run(tmp_path / "b", ABOVE))
    assert facts["steps"] is None and facts["limits"] == []
    assert str(AboveKind.ABOVE) == "io_above_device"


def test_what_is_true_of_these_runs_alone_comes_before_what_is_true_of_any(tmp_path):
    kinds = [str(one.kind) for one in summarise([Record(make_run(tmp_path / "b", ABOVE))]).cautions]
    assert kinds.index("io_above_device") < kinds.index("derived_workload") and "io_above_device" in kinds[:2]


def test_a_workload_is_derived_from_what_its_record_names(tmp_path):
    folder = changed(make_run(tmp_path / "b", ABOVE), workload={"name": "shop", "derived_from": "TPC-C"})
    kinds = {one.kind: one.facts for one in summarise([Record(folder)]).cautions}
    assert kinds[CautionKind.DERIVED] == {"workload": "shop", "model": "TPC-C"}


# Cautions about an array that was reconfigured between variants.


SDA = on({"name": "sda"})
BEFORE = {"command": ["set-cache"], "output": "", "seconds": 1.0}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A and B on a real array, B reconfigured before."""
    a, b = made(template(tmp_path_factory.mktemp("pair"), measured_s=40), A=[400.0], B=[480.0])
    return with_manifest(a, devices=SDA), with_manifest(b, devices=SDA, hook=BEFORE)


def test_of_an_array_whose_dram_and_flash_nobody_named_it_is_said(pair):
    a, b = pair
    assert kinds_of(array_cautions(pair)) == [ArrayKind.SIZE_UNKNOWN]
    assert not list(array_cautions([a, with_manifest(b, array={"dram_bytes": 8 << 30})]))
    assert not list(array_cautions([a, with_manifest(b, hook=None)]))
    emulated = SDA | {"data": {"name": "loop0", "emulated_array": {"block_device": True, "spindles": 4}}}
    assert not list(array_cautions([with_manifest(run, devices=emulated) for run in pair]))


def lay(data: tuple[str, str], wal: tuple[str, str]) -> dict:
    """Return devices of a manifest: disk and folder of the data, and of the log."""
    (data_disk, data_folder), (wal_disk, wal_folder) = data, wal
    return {
        "data": {"name": f"{data_disk}1", "disk": data_disk},
        "wal": {"name": f"{wal_disk}1", "disk": wal_disk},
        "folders": {"data": data_folder, "wal": wal_folder},
    }


HERE = lay(("sda", "/a"), ("sda", "/a/pg_wal"))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (lay(("sda", "/b"), ("sda", "/b/pg_wal")), {"role": "data", "disk": "sda", "folders": ["/a", "/b"]}),
        (lay(("sda", "/a"), ("sda", "/log")), {"role": "wal", "disk": "sda", "folders": ["/a/pg_wal", "/log"]}),
        (lay(("sdb", "/b"), ("sdb", "/b/pg_wal")), None),
        (lay(("sda", "/a"), ("sdb", "/log")), None),
        (HERE, None),
        ({"data": {"emulated_array": {"spindles": 4}}, "folders": {"data": "/b"}}, None),
        ({"data": {"name": "sda", "disk": "sda"}}, None),
    ],
    ids=["data", "log alone", "two disks", "log on another", "one folder", "emulated", "older record"],
)
def test_folders_on_one_disk_are_no_two_devices(pair, other: dict, said: dict | None):
    runs = [with_manifest(run, devices=devices, hook=None) for run, devices in zip(pair, (HERE, other), strict=True)]
    found = [(one.kind, one.facts) for one in folders_on_one_disk(runs)]
    assert found == ([(StorageKind.ONE_DISK, said)] if said else [])


def test_two_databases_beside_each_other_are_no_comparison_of_devices(pair):
    places = [lay(("sda", folder), ("sda", folder)) for folder in "ab"]
    a, b = (with_manifest(run, devices=one, hook=None) for run, one in zip(pair, places, strict=True))
    assert list(folders_on_one_disk([a, b]))
    assert not list(folders_on_one_disk([a, with_manifest(b, workload={"name": "bank", "scale": {"branches": 9}})]))


@pytest.mark.parametrize(
    ("kind", "of_it", "of_others"),
    [
        (CautionKind.RESTORED, {"reset": "restore"}, {"reset": "continue"}),
        (CautionKind.NOT_RESET, {"reset": "continue"}, {"reset": "restore"}),
        (CautionKind.LOCAL_DRIVER, {"collectors": {"host": {"title": "Host CPU", "help": ""}}}, {"collectors": {}}),
    ],
)
def test_what_is_true_of_some_runs_is_said_of_these_alone(kind, of_it, of_others):
    def steps(*changes: dict[str, object]) -> list[list[str] | None]:
        runs = []
        for name, change in zip("ab", changes, strict=True):
            made = run([step(device=VDA, emulated_roles=(), variant=name, key=name)])
            runs.append(with_manifest(made, **{"collectors": {}} | change))
        return [one.facts["steps"] for one in cautions(runs) if one.kind is kind]

    [of_both], [of_one], of_none = steps(of_it, of_it), steps(of_it, of_others), steps(of_others, of_others)
    assert of_both is None and len(of_one) == 1 and of_one[0].startswith("a") and of_none == []

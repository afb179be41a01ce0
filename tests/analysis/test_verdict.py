import pytest

from stallmark.analysis.attribution import IoTime
from stallmark.analysis.bottleneck import IS_BOTTLENECK, DeviceKind, JudgedDevice, device_verdict

IN_DEVICE = IoTime()


def judge(
    data_busy=None, wal_busy=None, cpu=None, wal_apart=True, waits=True, time=IN_DEVICE, cpu_own=None, closed=True,
    **shares,
):  # fmt: skip
    rest = {name: shares.get(name, 0.0) for name in ("io", "lock", "wal", "client", "other")}
    rest["cpu"] = 1 - sum(rest.values())
    return device_verdict(rest if waits else None, data_busy, wal_busy, cpu, wal_apart, (time, time), cpu_own, closed)


def bottleneck(verdict) -> bool | None:
    return IS_BOTTLENECK.get(verdict.kind)


@pytest.mark.parametrize(
    ("shares", "limits"),
    [
        ({"io": 0.84}, True),
        ({"io": 0.03, "wal": 0.03}, False),
        ({"io": 0.2, "wal": 0.15}, None),
        ({"io": 0.18, "lock": 0.75}, True),  # lock holders wait for the device, the others for them
        ({"io": 0.02, "lock": 0.75}, False),
        ({"io": 0.07, "client": 0.9}, True),  # light load: what little time is spent, is spent in I/O
        ({"io": 0.03, "client": 0.96}, None),  # too light to tell
        ({"lock": 0.99}, None),
    ],
)
def test_judges_by_the_time_of_users_who_progress(shares, limits):
    assert bottleneck(judge(**shares)) is limits


def test_a_device_that_is_seldom_busy_limits_by_its_latency():
    assert judge(io=0.9, data_busy=0.1).kind == DeviceKind.LATENCY_LIMITS
    assert judge(io=0.9, data_busy=0.95).kind == DeviceKind.LIMITS


def test_names_the_logs_device_where_users_wait_for_it():
    verdict = judge(io=0.1, wal=0.7, data_busy=0.2, wal_busy=0.9)
    assert verdict.kind == DeviceKind.LIMITS
    assert (verdict.facts["device"], verdict.facts["busy_share"]) == (JudgedDevice.LOG, 0.9)
    assert judge(io=0.1, wal=0.7, wal_apart=False).facts["device"] == JudgedDevice.DATA


def test_without_waits_only_a_clear_case_is_judged():
    assert bottleneck(judge(waits=False, data_busy=0.97, cpu=0.3)) is True
    assert bottleneck(judge(waits=False, data_busy=0.1, cpu=0.97)) is False
    assert judge(waits=False, data_busy=0.6, cpu=0.97) is None
    assert judge(waits=False, cpu=0.97) is None


def test_waiting_for_a_cpu_after_an_io_is_not_the_devices_doing():
    """As measured on a fast disk with two busy cores: the device was 15 % of what the server called stall."""
    shares = {"io": 0.11, "wal": 0.353, "lock": 0.333, "client": 0.127}
    verdict = judge(cpu=0.7, wal_apart=False, **shares)
    assert bottleneck(verdict) is True
    assert verdict.facts["progress_share"] == pytest.approx((0.11 + 0.353) / (1 - 0.333 - 0.127))
    verdict = judge(cpu=0.97, wal_apart=False, time=IoTime(device=0.15, cpu=0.85), **shares)
    assert bottleneck(verdict) is False and verdict.facts["device_share"] == pytest.approx(0.15)


def test_storage_is_not_the_bottleneck_alone_where_the_cpus_leave_it_little():
    """A transaction needs its CPU time on any storage: at 94 % busy no storage gives more than 1 / 0.94."""
    assert judge(io=0.6, cpu=0.94).kind == DeviceKind.WITH_CPUS
    assert bottleneck(judge(io=0.6, cpu=0.75)) is True
    assert bottleneck(judge(io=0.6, cpu=0.96)) is False and judge(io=0.6, cpu=0.96).kind == DeviceKind.CPUS_LIMIT
    assert judge(waits=False, data_busy=0.97, cpu=0.97).kind == DeviceKind.CPUS_LIMIT
    assert bottleneck(judge(waits=False, data_busy=0.97, cpu=0.9)) is None


@pytest.mark.parametrize(
    ("shares", "gain"),
    [
        ({"io": 0.6, "cpu": 0.85}, 1 / 0.85 - 1),
        ({"waits": False, "data_busy": 0.97, "cpu": 0.85}, 1 / 0.85 - 1),
        ({"io": 0.05, "wal": 0.01, "client": 0.9, "cpu": 0.85}, 1 / 0.94 - 1),  # users think for 90 % of their time
        ({"io": 0.05, "lock": 0.05, "client": 0.8, "cpu": 0.97}, 1 / 0.97 - 1),  # those who hold locks wait for I/O
        ({"io": 0.01, "client": 0.9, "cpu": 0.97}, 1 / 0.99 - 1),
        ({"io": 0.6, "cpu": 0.85, "closed": False}, None),  # throughput is the requested rate
        ({"waits": False, "data_busy": 0.97, "cpu": 0.85, "closed": False}, None),
    ],
)
def test_no_more_throughput_is_promised_of_faster_storage_than_it_can_give(shares, gain):
    assert judge(**shares).facts["gain_share"] == (None if gain is None else pytest.approx(gain))


def test_cpus_that_others_use_are_not_said_to_limit():
    """A demo beside builds on the same machine: users waited for disks, and the CPUs had no idle time."""
    verdict = judge(io=0.98, data_busy=0.77, cpu=1.0, cpu_own=0.25)
    assert verdict.kind == DeviceKind.CPUS_BUSY_OTHERWISE and bottleneck(verdict) is None
    assert judge(io=0.98, data_busy=0.77, cpu=0.85, cpu_own=0.25).kind == DeviceKind.CPUS_BUSY_OTHERWISE
    assert judge(io=0.98, data_busy=0.77, cpu=1.0, cpu_own=0.7).kind == DeviceKind.CPUS_LIMIT
    assert judge(io=0.98, data_busy=0.77, cpu=1.0, cpu_own=1.4).kind == DeviceKind.CPUS_LIMIT  # sessions queue for CPUs
    assert bottleneck(judge(io=0.98, data_busy=0.77, cpu=0.6, cpu_own=0.1)) is True


ABOVE = IoTime(device=0.03, above=0.97)
EITHER = IoTime(device=0.1, unknown=0.9)


@pytest.mark.parametrize(
    ("time", "io", "cpu", "kind"),
    [
        (ABOVE, 0.9, 0.12, DeviceKind.ABOVE_LIMITS),
        (ABOVE, 0.3, 0.12, DeviceKind.ONE_OF_SEVERAL),
        (ABOVE, 0.1, 0.12, DeviceKind.NOT_LIMITING),
        (ABOVE, 0.9, 0.9, DeviceKind.WITH_CPUS),
        (IoTime(device=0.6, above=0.4), 0.9, 0.12, DeviceKind.LIMITS),
        (EITHER, 0.9, 0.12, DeviceKind.NOT_DIVIDED),
        (EITHER, 0.1, 0.12, DeviceKind.NOT_LIMITING),
        (IoTime(device=0.9, unknown=0.1), 0.9, 0.12, DeviceKind.LIMITS),
    ],
)
def test_storage_above_the_device_limits_as_the_device_does(time, io, cpu, kind):
    assert judge(time=time, cpu=cpu, io=io).kind == kind


def test_idle_users_of_a_saturated_machine_are_told_of_its_cpus():
    saturated = judge(client=0.99, cpu=0.97, cpu_own=0.2)
    assert saturated.kind == DeviceKind.NOT_TOLD and saturated.facts["cpu_share"] == 0.97
    assert "cpu_share" not in judge(client=0.99, cpu=0.2).facts and "cpu_share" not in judge(lock=0.99, cpu=1.0).facts

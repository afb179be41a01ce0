import pytest

from stallmark.analysis.cause.device_verdict import device_verdict


def judge(data_busy=None, wal_busy=None, cpu=None, wal_apart=True, waits=True, own=(1.0, 1.0), **shares):
    rest = {name: shares.get(name, 0.0) for name in ("io", "lock", "wal", "client", "other")}
    rest["cpu"] = 1 - sum(rest.values())
    return device_verdict(rest if waits else None, data_busy, wal_busy, cpu, wal_apart, own)


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
    assert judge(**shares).limits is limits


def test_says_what_it_rests_on():
    verdict = judge(io=0.03, cpu=0.97)
    assert verdict.sentence == (
        "The device is not the bottleneck: users spent 3 % of their time in I/O of data files while the host's "
        "CPUs were 97 % busy."
    )


def test_a_device_that_is_seldom_busy_limits_by_its_latency():
    assert judge(io=0.9, data_busy=0.1).sentence.startswith("The latency of the device itself is the bottleneck")
    assert judge(io=0.9, data_busy=0.95).sentence.startswith("The device is the bottleneck")


def test_names_the_logs_device_where_users_wait_for_it():
    verdict = judge(io=0.1, wal=0.7, data_busy=0.2, wal_busy=0.9)
    assert verdict.limits
    assert verdict.sentence.startswith("The log's device is the bottleneck")
    assert "the log's device was 90 % busy" in verdict.sentence
    assert judge(io=0.1, wal=0.7, wal_apart=False).sentence.startswith("The device is the bottleneck")


def test_without_waits_only_a_clear_case_is_judged():
    assert judge(waits=False, data_busy=0.97, cpu=0.3).limits is True
    assert judge(waits=False, data_busy=0.1, cpu=0.97).limits is False
    assert judge(waits=False, data_busy=0.6, cpu=0.97) is None
    assert judge(waits=False, cpu=0.97) is None


def test_waiting_for_a_cpu_after_an_io_is_not_the_devices_doing():
    """As measured on a fast disk with two busy cores: the device was 15 % of what the server called stall."""
    shares = {"io": 0.11, "wal": 0.353, "lock": 0.333, "client": 0.127}
    assert judge(cpu=0.7, wal_apart=False, **shares).limits is True
    verdict = judge(cpu=0.97, wal_apart=False, own=(0.15, 0.15), **shares)
    assert verdict.limits is False
    assert verdict.sentence == (
        "The device is not the bottleneck: users spent 11 % of their time in I/O of data files, 35 % in writing the "
        "log (15 % of that was the device itself) and 33 % waiting for locks while the host's CPUs were 97 % busy."
    )


def test_storage_is_not_the_bottleneck_alone_where_the_cpus_leave_it_little():
    """A transaction needs its CPU time on any storage: at 94 % busy no storage gives more than 1 / 0.94."""
    verdict = judge(io=0.6, cpu=0.94)
    assert verdict.limits is None
    assert verdict.sentence == (
        "The device and the CPUs are limits together: users spent 60 % of their time in I/O of data files while the "
        "host's CPUs were 94 % busy, so that faster storage alone could give 6 % more at most."
    )
    assert judge(io=0.6, cpu=0.75).limits is True
    assert "could give no more" in judge(io=0.9, cpu=1.0).sentence
    assert judge(waits=False, data_busy=0.97, cpu=0.9).limits is None

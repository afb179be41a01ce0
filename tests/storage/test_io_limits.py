"""Limits of control groups on a server's I/O, of both versions, on files as the kernel writes them."""

from pathlib import Path

import pytest

from stallmark.record.manifest.storage import IoLimit
from stallmark.storage import block_devices as limits
from stallmark.storage.block_devices import io_limits


@pytest.fixture
def groups(tmp_path, monkeypatch) -> Path:
    """A machine with both versions, as Debian mounts them, and a process in a group of each."""
    process = tmp_path / "proc" / "42"
    process.mkdir(parents=True)
    (tmp_path / "proc" / "self").mkdir()
    (process / "cgroup").write_text("7:blkio:/docker/abc\n5:devices:/docker/abc\n0::/system.slice/db.service\n")
    (tmp_path / "proc" / "self" / "mounts").write_text(
        f"cgroup {tmp_path}/blkio cgroup rw,nosuid,blkio 0 0\ncgroup {tmp_path}/cpu cgroup rw,cpu 0 0\n"
        f"cgroup2 {tmp_path}/unified cgroup2 rw,nosuid 0 0\n"
    )
    for folder in ("blkio/docker/abc", "unified/system.slice/db.service"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(limits, "PROC", tmp_path / "proc")
    return tmp_path


def test_limits_of_a_group_and_of_those_around_it_are_told_and_of_no_other_device(groups):
    inner = groups / "blkio/docker/abc/blkio.throttle.read_iops_device"
    inner.write_text("7:1 1500\n8:0 9\n")
    outer = groups / "unified/system.slice/io.max"
    outer.write_text("7:1 rbps=max wbps=1048576 riops=max wiops=300\n259:0 rbps=1 wbps=1 riops=1 wiops=1\n")
    assert io_limits(42, {"7:1"}) == (
        IoLimit(limited="reads", per_s=1500, file=str(inner)),
        IoLimit(limited="bytes written", per_s=1048576, file=str(outer)),
        IoLimit(limited="writes", per_s=300, file=str(outer)),
    )
    assert io_limits(42, {"254:0"}) == ()


def test_what_cannot_be_read_has_no_limits(groups):
    assert io_limits(42, {"7:1"}) == () and io_limits(43, {"7:1"}) == ()
    (groups / "proc" / "self" / "mounts").unlink()
    assert io_limits(42, {"7:1"}) == ()

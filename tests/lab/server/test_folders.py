"""The folders of a server, and limits on the disks under them."""

import os
from pathlib import Path

import pytest
from support.asking_docker import said, up

from stallmark.errors import StallmarkError
from stallmark.lab.server import container
from stallmark.lab.server.container import DeviceLimits
from stallmark.storage.block_devices import BlockDevice


def test_a_folder_with_other_files_is_refused(engine, folder):
    (folder / "thesis.doc").touch()
    assert "holds files that are not of this server" in said(up("--data", folder))
    assert engine.containers == {}


def test_folders_in_each_other_are_refused(engine, folder):
    assert "lie in each other" in said(up("--data", folder, "--log", folder / "log"))
    assert "lie in each other" in said(up("--data", folder, "--log", folder))


@pytest.mark.skipif(os.getuid() != 0, reason="Only root gives folders away.")
def test_root_gives_the_folder_to_the_servers_user(engine, sql_server, tmp_path):
    said(up("--port", sql_server.port, "--data", tmp_path / "new" / "data"), 0)
    assert (tmp_path / "new" / "data").stat().st_uid == 10001


def test_anybody_else_is_told_what_to_do(engine, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "getuid", lambda: 1000)
    folder = tmp_path / "data"
    assert f"sudo chown 10001 {folder}" in said(up("--data", folder))


def test_limits_need_a_folder_and_a_disk(engine, tmp_path):
    assert "name it with --data" in said(up("--device-read-iops", 5))
    if Path("/dev/shm").is_dir():
        with pytest.raises(StallmarkError, match=r"No limit can be put on the device under /dev/shm.*in memory"):
            DeviceLimits(read_iops=5).options([Path("/dev/shm")])


@pytest.mark.parametrize(
    ("place", "is_partition", "disk"),
    [
        ("block/sda", False, "/dev/sda"),
        ("block/nvme0n1/nvme0n1p2", True, "/dev/nvme0n1"),
        ("virtual/block/dm-3", False, "/dev/dm-3"),
        ("block/cciss!c0d0/cciss!c0d0p1", True, "/dev/cciss/c0d0"),
    ],
)
def test_the_kernel_limits_whole_disks(tmp_path, monkeypatch, place, is_partition, disk):
    real = tmp_path / "devices" / place
    real.mkdir(parents=True)
    if is_partition:
        (real / "partition").touch()
    (tmp_path / "by-number").mkdir()
    (tmp_path / "by-number" / "8:1").symlink_to(real)
    monkeypatch.setattr(container, "SYS_BLOCK", tmp_path / "by-number")
    monkeypatch.setattr(container, "device_behind", lambda _: BlockDevice("8:1", real.name, True, ""))
    assert container.disk_beneath(tmp_path) == disk

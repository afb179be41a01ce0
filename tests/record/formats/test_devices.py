"""The disks among the devices of a machine: each I/O counts once."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallmark.record.formats.devices import KINDS, choose_disks, role_of

pytestmark = pytest.mark.thorough

FEW = frozenset[str]()


@pytest.mark.parametrize(
    ("names", "counted", "doubtful"),
    [
        ("sda sda1 sdp sdp1 dm-0", "sda sdp", ""),
        ("nvme0n1 nvme0n1p2 nvme0n12 nvme1c2n1", "nvme0n1 nvme0n12 nvme1c2n1", ""),
        ("nvme0n1 nvme0c0n1 nvme0c1n1", "nvme0n1", ""),
        ("nvme0n1p1 nvme0c0n1 nvme0c1n1", "nvme0c0n1 nvme0c1n1", ""),
        ("xvdap1 xvdf", "xvdap1 xvdf", ""),
        ("xvdap1 xvda", "xvda", ""),
        ("xvda1 xvda2 xvdb", "xvda1 xvda2 xvdb", ""),
        ("sdap1 sda", "sdap1 sda", ""),
        ("cciss/c0d0 cciss/c0d0p1 dm-0 md0", "cciss/c0d0", ""),
        ("dasda dasda1 emcpowera asm!data VxDMP3", "dasda", ""),
        ("pmem0 pmem1s mmcblk0 mmcblk0p1 rbd0 nbd3 zd0 zd0p1", "pmem0 pmem1s mmcblk0 rbd0 nbd3", ""),
        ("vda vda1 bcache0 drbd0 mpatha mpathap1 vg-root VolGroup00-LogVol00", "vda", ""),
        ("sda loop0 ram0 zram0 sr0 fd0", "sda", ""),
        ("dm-0 loop1", "dm-0", ""),
        ("/dev/sda /dev/sda1 /dev/dm-0", "/dev/sda", ""),
        ("sda fioa fioa1 rssda scinia ublkb0 ublkb0p1", "sda fioa rssda scinia ublkb0", ""),
        ("dm-0 dm-1", "dm-0 dm-1", "dm-0 dm-1"),
        ("ata-ST2000 ata-ST2000-part1 wwn-0x5000 sda vg-root", "ata-ST2000 wwn-0x5000 sda", ""),
        (r"C: D:\sql-data HarddiskVolume1", r"C: D:\sql-data HarddiskVolume1", ""),
        ("sda centos-root VG_1-lv--2", "sda", ""),
        ("dev8-0 dev8-1 dev8-16 dev8-17 dev65-16", "dev8-0 dev8-16 dev65-16", ""),
        ("dev135-240 dev135-241 dev128-1", "dev135-240 dev128-1", ""),
        ("dev202-1 dev202-80", "dev202-1 dev202-80", ""),
        ("dev8-0 dev9-0 dev7-0 dev11-0 dev147-0 dev201-0 dev120-16", "dev8-0", ""),
        ("dev253-0 dev253-16", "dev253-0 dev253-16", ""),
        ("dev259-0", "dev259-0", ""),
        ("dev252-0 dev253-0", "dev252-0 dev253-0", "dev252-0 dev253-0"),
        ("dev8-0 dev253-0", "dev8-0", "dev253-0"),
        ("dev253-0 dev253-1", "dev253-0 dev253-1", "dev253-0 dev253-1"),
        ("dev259-0 dev259-16", "dev259-0 dev259-16", "dev259-0 dev259-16"),
        ("", "", ""),
    ],
)
def test_disks_among_devices(names, counted, doubtful):
    choice = choose_disks(names.split())
    assert (choice.counted, choice.doubtful) == (set(counted.split()), set(doubtful.split()))


def test_each_kind_has_a_source_and_a_name_of_its_own():
    assert all(kind.source for kind in KINDS)
    assert role_of("sda", FEW) == "disk" and role_of("loop0", FEW) == "none" and role_of("dm-3", FEW) == "upper"


DISKS = ("sda", "sdb", "nvme0n1", "nvme1n2", "xvda", "vdb", "cciss/c0d1", "dasdb", "mmcblk0")
PARTS = {"nvme0n1": "nvme0n1p1", "nvme1n2": "nvme1n2p3", "cciss/c0d1": "cciss/c0d1p2", "mmcblk0": "mmcblk0p1"}
UPPER = ("dm-0", "dm-7", "md127", "bcache1", "drbd0", "vg-data", "mpathb", "emcpowerc")


@st.composite
def machines(draw: st.DrawFn) -> tuple[set[str], set[str]]:
    """Return the devices of a machine, and those on which each of its I/Os counts once."""
    disks = draw(st.sets(st.sampled_from(DISKS), min_size=1))
    names = set(disks)
    for disk in sorted(disks):
        part = PARTS.get(disk, f"{disk}1")
        if draw(st.booleans()):
            names.add(part)
        if disk.startswith("nvme") and draw(st.booleans()):
            names |= {disk.replace("n1", "c0n1").replace("n2", "c3n2")}
    alone = draw(st.sampled_from([None, "xvdq1", "sdz3"]))  # a partition without its disk
    names |= {alone} - {None}
    return names | draw(st.sets(st.sampled_from(UPPER))) | draw(st.sets(st.sampled_from(("loop0", "zram0", "sr0")))), (
        disks | ({alone} - {None})
    )


@settings(max_examples=200, deadline=None)
@given(machine=machines())
def test_of_any_mix_of_devices_each_disk_counts_once(machine: tuple[set[str], set[str]]):
    names, disks = machine
    assert choose_disks(names) == (disks, set())


NUMBERS: Mapping[int, int] = {8: 16, 65: 16, 71: 16, 128: 16, 135: 16, 202: 16, 94: 4, 3: 64}


@settings(max_examples=200, deadline=None)
@given(parts=st.sets(st.tuples(st.sampled_from(sorted(NUMBERS)), st.integers(0, 3), st.integers(0, 3)), min_size=1))
def test_numbers_of_partitions_count_only_without_their_disk(parts: set[tuple[int, int, int]]):
    names = {f"dev{major}-{disk * NUMBERS[major] + part}" for major, disk, part in parts}
    there = {(major, disk) for major, disk, part in parts if part == 0}
    counted = {
        f"dev{major}-{disk * NUMBERS[major] + part}"
        for major, disk, part in parts
        if part == 0 or (major, disk) not in there
    }
    assert choose_disks(names).counted == counted

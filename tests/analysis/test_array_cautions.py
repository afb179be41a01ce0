"""Cautions about an array that was reconfigured between variants."""

import pytest
from support.comparisons import made, template, with_manifest
from support.findings import kinds_of
from support.manifests import on

from stallmark.analysis.compare.settings import folders_on_one_disk
from stallmark.analysis.storage_cautions import ArrayKind, array_cautions

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
    assert [one.facts for one in folders_on_one_disk(runs)] == ([said] if said else [])


def test_two_databases_beside_each_other_are_no_comparison_of_devices(pair):
    places = [lay(("sda", folder), ("sda", folder)) for folder in "ab"]
    a, b = (with_manifest(run, devices=one, hook=None) for run, one in zip(pair, places, strict=True))
    assert list(folders_on_one_disk([a, b]))
    assert not list(folders_on_one_disk([a, with_manifest(b, workload={"name": "bank", "scale": {"branches": 9}})]))

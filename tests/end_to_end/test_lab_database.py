"""A database on a block device of the lab: it lives there, its record says it was EMULATED, and nothing remains."""

import json
import subprocess

import pytest

from stallmark.driver.lab import needs
from stallmark.driver.record import Record

FAST = ("--rpm=100000", "--seek-ms=0", "--cache=64MiB")


@pytest.mark.skipif(needs.missing() is not None, reason=f"{needs.missing()}")
def test_a_database_lives_on_it(fresh):
    code, said = fresh.run_beside("lab", "create", "array", "--size=700MiB", *FAST, "--json")
    assert code == 0, said
    device, place = json.loads(said)["device"], fresh.folder / "array"
    place.mkdir()
    try:
        subprocess.run(["mkfs.ext4", "-q", device], check=True)
        subprocess.run(["mount", device, place], check=True)
        try:
            code, said = fresh.run_beside("run", fresh.scenario(), "--data-dir", str(place / "data"))
            assert code == 0, said
            assert fresh.run_beside("lab", "destroy", "array")[1].count(f"in use ({place})") == 1
        finally:
            subprocess.run(["umount", place], check=True)
    finally:
        code, said = fresh.run("lab", "destroy", "array")
    assert code == 0, said
    [manifest] = fresh.manifests()
    assert manifest["device"]["emulated"]
    lab = manifest["device"]["data"]["lab"]
    assert (lab["name"], lab["rpm"], lab["cache"]["size"]) == ("array", 100_000, 64 << 20)
    [folder] = fresh.newest().glob("*/manifest.json")
    rows = Record(folder.parent).table("device").to_pylist()
    assert all(row["emulated"] and row["role"] == "data+wal" for row in rows)
    assert rows[-1]["syncs"] > rows[0]["syncs"]  # of every commit: the array saw the database

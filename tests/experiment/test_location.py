"""Device and file system of an embedded server's folders, as it is said before a load."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from stallmark.experiment.placing import locations
from stallmark.record.probe import DirectIo
from stallmark.scenarios.variant import PlaceChoice, Variant
from stallmark.storage import block_devices


def engine_in(**folders: Path):
    return SimpleNamespace(directories=lambda: folders)


def test_it_names_the_folder_its_device_and_its_file_system(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("stallmark.experiment.placing.device_behind", lambda folder: SimpleNamespace(name="sdx"))
    mounted = max((p for p in psutil.disk_partitions(all=True) if tmp_path.is_relative_to(p.mountpoint)),
                  key=lambda p: len(p.mountpoint))  # fmt: skip
    monkeypatch.setattr("stallmark.experiment.placing.direct_io", lambda folder: DirectIo("past"))
    data, wal = locations(engine_in(data=tmp_path, wal=tmp_path / "wal"))
    assert data.startswith(f"data: {tmp_path},") and f"on sdx ({mounted.fstype})" in data and "direct I/O" in data
    assert f"on sdx ({mounted.fstype})" in wal and "direct" not in wal


@pytest.mark.parametrize(
    ("goes", "told"), [("past", "direct I/O"), ("through", "reads may come from memory"), ("unknown", "perhaps")]
)
def test_direct_io_is_claimed_only_if_it_was_seen(tmp_path: Path, monkeypatch, goes, told):
    monkeypatch.setattr("stallmark.experiment.placing.direct_io", lambda folder: DirectIo(goes))
    [data] = locations(engine_in(data=tmp_path))
    assert told in data and data.endswith(", direct I/O") is (goes == "past")
    monkeypatch.setattr("stallmark.experiment.placing.direct_io", lambda folder: None)
    [data] = locations(engine_in(data=tmp_path))
    assert "direct" not in data


def test_without_a_device_it_says_why(tmp_path: Path, monkeypatch):
    def none(folder: Path):
        raise block_devices.InMemory(f"{folder} is in memory (tmpfs): no device is behind it.")

    monkeypatch.setattr("stallmark.experiment.placing.device_behind", none)
    [data] = locations(engine_in(data=tmp_path))
    assert "in memory (tmpfs)" in data


def test_a_server_by_url_has_no_folders_here():
    assert list(locations(engine_in())) == []


def test_the_folders_of_variants_are_said_too_and_need_not_be_there_yet(tmp_path: Path, monkeypatch):
    looked_at = []

    def device(folder: Path):
        looked_at.append(folder)
        return SimpleNamespace(name="sdx")

    monkeypatch.setattr("stallmark.experiment.placing.device_behind", device)
    place = PlaceChoice(data=str(tmp_path / "new"), log=str(tmp_path))
    scenario = SimpleNamespace(variants=[Variant(name="home"), Variant(name="fast", place=place)])
    _, data, log = locations(engine_in(data=tmp_path), scenario)
    assert data.startswith(f"fast: data: {tmp_path / 'new'},") and log.startswith(f"fast: log: {tmp_path},")
    assert looked_at == [tmp_path] * 3
    assert list(locations(engine_in(), scenario)) == []
    scenario = SimpleNamespace(variants=[Variant(name="fast", place=PlaceChoice(data=str(tmp_path)))])
    assert list(locations(engine_in(data=tmp_path), scenario))[2] == "fast: log: with the data"

"""The outcome of direct I/O is in the manifest, of data files that are read past the page cache."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from stallmark.experiment import manifest
from stallmark.experiment.manifest import devices_of
from stallmark.record.direct_io import DirectIo
from stallmark.storage.emulator import ArrayModel

MODEL = ArrayModel(spindles=4, read_ms=5, write_ms=5, sync_ms=2, mb_per_s=150)


@pytest.mark.parametrize(
    ("here", "models", "recorded"),
    [(True, {}, True), (True, {"wal": MODEL}, True), (True, {"data": MODEL}, False), (False, {}, False)],
)
def test_it_is_tried_where_real_storage_is_read(tmp_path: Path, monkeypatch, here, models, recorded) -> None:
    outcome = DirectIo("unknown", "fuse.bindfs")
    tried: list[Path] = []
    monkeypatch.setattr(manifest, "direct_io", lambda folder: tried.append(folder) or outcome)
    folders = {"data": tmp_path, "wal": tmp_path} if here else {}
    engine = SimpleNamespace(
        directories=lambda: folders, built_in=lambda: {}, process=lambda: None, devices=SimpleNamespace(models=models)
    )
    found = devices_of(engine)
    assert found.direct_io == (outcome if recorded else None) and tried == [tmp_path] * recorded

"""Caches that could not be emptied before a cold start stand in the record."""

import io
from pathlib import Path

from rich.console import Console

from stallmark.engines.postgres.embedded.engine import EmbeddedCaches, EmbeddedEngine
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.experiment.user_run import Run
from stallmark.record.reader import find_records

LEFT = "The cache was not emptied of the changed pages of other databases: theirs."


def test_in_the_notes(read, bank: EmbeddedEngine, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(Run, "_drive", lambda self, writer: "that is enough")
    scenario = read(
        "start_cache: prefilled", "start_cache: cold", "reset: restore", "reset: continue",
        "emulated_array:\n  data: {spindles: 8, read_ms: 2, write_ms: 2, sync_ms: 1, mb_per_s: 150}\n", "",
        "  - name: bare\n    emulated_array: bare\n", "", "    buffer_pool: 8MiB\n", "    emulated_array: bare\n",
    )  # fmt: skip
    monkeypatch.setattr(EmbeddedCaches, "empty", lambda self: [LEFT])
    runner = Runner(scenario, EmbeddedEngine(bank.server, "bank"), tmp_path, Show(Console(file=io.StringIO())))
    runner.run()
    [record] = find_records([runner.folder])
    assert LEFT in record.manifest.notes

"""Settings of the server that somebody changed while a run lasted are in the record's notes."""

import io
from pathlib import Path

import pytest
from rich.console import Console

from stallmark.engines import several
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.errors import CallFailed, ErrorClass
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.experiment.user_run import Run
from stallmark.record.reader import find_records


@pytest.fixture
def notes(read, bank: EmbeddedEngine, tmp_path: Path, monkeypatch):
    """Makes a run, in which this is done in place of a load; returns the notes on settings."""

    def run(meanwhile) -> list[str]:
        monkeypatch.setattr(Run, "_drive", lambda self, writer: meanwhile())
        scenario = read(
            "start_cache: prefilled", "", "reset: restore", "reset: continue",
            "emulated_array:\n  data: {spindles: 8, read_ms: 2, write_ms: 2, sync_ms: 1, mb_per_s: 150}\n", "",
            "  - name: bare\n    emulated_array: bare\n", "", "    buffer_pool: 8MiB\n", "    emulated_array: bare\n",
        )  # fmt: skip
        runner = Runner(scenario, EmbeddedEngine(bank.server, "bank"), tmp_path, Show(Console(file=io.StringIO())))
        assert runner.run().incomplete_because is None
        [record] = find_records([runner.folder])
        return [note for note in record.manifest.notes if "ettings of the server" in note]

    return run


def test_what_changed_is_named_with_both_values(notes, bank: EmbeddedEngine):
    try:
        told = notes(lambda: bank.execute("ALTER DATABASE bank SET synchronous_commit = off"))
    finally:
        bank.execute("ALTER DATABASE bank RESET synchronous_commit")
    assert told == ["Settings of the server changed during the run: synchronous_commit was on and is off."]


def test_what_stayed_is_not_noted(notes):
    assert notes(lambda: None) == []


def test_settings_that_cannot_be_read_again_are_not_taken_for_the_same(notes, monkeypatch):
    def fail(_) -> None:
        raise CallFailed(ErrorClass.OTHER, "42501", "permission denied")

    [told] = notes(lambda: monkeypatch.setattr(several, "settings", fail))
    assert told.startswith("Whether settings of the server changed during the run is not known (")

"""Summaries of records, made once for all commands that show them."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import pytest

from stallmark.analysis import run
from stallmark.analysis.run import Call, RunSummary

Kept = dict[tuple, list[RunSummary]]


@contextmanager
def summaries_in(kept: Kept) -> Iterator[None]:
    """Within this, summarise a run again only after its files have changed."""
    summarise = run.summarise_together

    def summarise_once(calls: Sequence[Call]) -> list[RunSummary]:
        key = tuple(map(_identity, calls))
        if key not in kept:
            kept[key] = summarise(calls)
        return list(kept[key])

    with pytest.MonkeyPatch.context() as patch:
        for module in [*sys.modules.values()]:
            if getattr(module, "summarise_together", None) is summarise:
                patch.setattr(module, "summarise_together", summarise_once)
        yield


@pytest.fixture(scope="module")
def kept_summaries() -> Kept:
    return {}


@pytest.fixture
def read_once(kept_summaries: Kept) -> Iterator[None]:
    """Summarise each run once for all tests of a module that ask for this."""
    with summaries_in(kept_summaries):
        yield


def _identity(call: Call) -> tuple:
    record = call.record
    files = sorted((file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in record.folder.iterdir())
    return type(record), record.folder.resolve(), record.manifest.model_dump_json(), *files, *call[1:]

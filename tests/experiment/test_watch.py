"""A server that is not held for us any more ends the run, with the reason."""

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console
from support.waiting import eventually

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.errors import NotGivenBack, StallmarkError
from stallmark.experiment import run
from stallmark.experiment.progress import Show
from stallmark.experiment.run import Watch
from stallmark.experiment.runner import Runner
from stallmark.experiment.user_run import Run
from stallmark.record.reader import find_records

GONE = "The lock that every run takes is gone: run again."
TWO_VARIANTS = (
    "emulated_array=null", "start_cache=as it is", "reset=continue", "measure=60s", "variants=[{name: a}, {name: b}]",
)  # fmt: skip


def gone() -> None:
    raise StallmarkError(GONE)


class Held(EmbeddedEngine):
    """Looks go through `look`; at the end something `is_left`."""

    look: Callable[[], None] = staticmethod(lambda: None)
    is_left = False

    @contextmanager
    def hold(self) -> Iterator[Callable[[], None]]:
        yield lambda: self.look()
        if self.is_left:
            raise NotGivenBack("The memory is still capped.")


@pytest.fixture
def engine(bank: EmbeddedEngine) -> Held:
    return Held(bank.server, "bank")


@pytest.fixture
def runner(engine: Held, read, tmp_path: Path) -> Runner:
    return Runner(read(sets=TWO_VARIANTS), engine, tmp_path / "runs", Show(Console(file=io.StringIO())))


def test_it_looks_again_and_again_until_something_is_wrong(monkeypatch):
    monkeypatch.setattr(run, "WATCH_EVERY_S", 0.001)
    looks = [gone, lambda: None, lambda: None]
    with Watch(lambda: looks.pop()()) as watching:
        eventually(lambda: watching.why is not None)
    assert watching.why == GONE.rstrip(".") and not looks


def test_a_run_ends_with_the_reason(runner, engine, monkeypatch):
    monkeypatch.setattr(run, "WATCH_EVERY_S", 0.2)
    looks = [gone, lambda: None, lambda: None]  # the first before the variant
    engine.look = lambda: looks.pop()()
    finished = runner.run()
    assert finished.incomplete_because == GONE.rstrip(".")
    [record] = find_records([runner.folder])
    assert record.manifest.status == "incomplete" and GONE.rstrip(".") in str(record.manifest)


def test_what_became_of_the_server_comes_before_what_failed(runner, engine, monkeypatch):
    def fail(*_: object) -> None:
        raise StallmarkError("The market is closed.")

    monkeypatch.setattr(Run, "_drive", fail)
    looks = [gone, lambda: None]
    engine.look = lambda: looks.pop()()
    assert runner.run().incomplete_because == f"{GONE} The market is closed"


def test_no_variant_begins_without_it(runner, engine, monkeypatch):
    began = []
    monkeypatch.setattr(Run, "go", lambda self: began.append(self))
    looks = [gone, lambda: None]
    engine.look = lambda: looks.pop()()
    assert runner.run().incomplete_because == GONE.rstrip(".")
    assert len(began) == 1


def test_what_is_left_on_the_server_is_said_beside_the_reason(runner, engine, monkeypatch):
    engine.is_left = True
    monkeypatch.setattr(Run, "go", lambda self: "the server went away")
    assert runner.run().incomplete_because == "the server went away. The memory is still capped"


def test_and_alone_where_the_run_was_whole(runner, engine, monkeypatch):
    engine.is_left = True
    monkeypatch.setattr(Run, "go", lambda self: None)
    with pytest.raises(NotGivenBack, match="still capped"):
        runner.run()

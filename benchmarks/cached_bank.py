"""A bank on an embedded server that holds all of it in memory, so that what drives it is the limit and not storage."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.loaders.load import build
from stallmark.transactions import find_workload


@contextmanager
def cached_bank(folder: Path, branches: int) -> Iterator[EmbeddedEngine]:
    engine = EmbeddedEngine(EmbeddedServer(folder), "bank")
    try:
        build(engine, find_workload("bank"), {"branches": branches}, 1, workers=2)
        engine.memory.cap(1024**3)
        engine.prefill.fill("bank")
        engine.checkpoint()
        yield engine
    finally:
        engine.close()

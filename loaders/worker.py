"""A loader process: makes batches and writes each, with its ledger row, in one transaction.

Started as `python -m stallmark.loaders.worker`. It reads lines of JSON: first a LoaderOrder (the engine's secrets come
this way, not in the arguments), then a Batch per line, and answers each with a line.
It ends with its parent, whose end closes its input; the server then rolls back what was under way.

Its imports are its start-up time: no SQLAlchemy here.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, islice
from queue import SimpleQueue
from typing import Any, TextIO

import msgspec

from stallmark.engines import open_engine, sql_file
from stallmark.engines.base import BulkWriter, Engine
from stallmark.errors import CallFailed, StallmarkError
from stallmark.loaders.plan import Batch, Loader, Piece, Scale, loader_for

# Literals, because a bulk writer takes no parameters; group names are ours.
LEDGER_BEGIN = "INSERT INTO stallmark.ledger (table_group, batch) VALUES ('{batch.group}', {batch.number})"
LEDGER_END = """\
UPDATE stallmark.ledger SET row_count = {rows}, byte_count = {size}
 WHERE table_group = '{batch.group}' AND batch = {batch.number}"""

# PostgreSQL's and SQL Server's codes for a key that is there already, and begin_batch.mssql.sql's own.
NOT_OURS = {"23505", "2627", "2601", "50001"}


class LoaderOrder(msgspec.Struct, forbid_unknown_fields=True):
    """The load, its target and the folders of its supply; `engine` may hold a password."""

    engine: str
    workload: str
    seed: int
    scale: dict[str, Any]
    folders: dict[str, str]


class Opened(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    """The message that the server was reached."""

    transactional: bool
    """True if a failed batch is rolled back."""
    limited: str | None = None
    """The reason for slow writes, if there is one."""


class Written(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    """A batch is committed; with no rows when someone else has loaded it."""

    rows: int
    bytes: int


class Failed(msgspec.Struct, tag=True, forbid_unknown_fields=True):
    reason: str


Answer = Opened | Written | Failed


class AlreadyLoaded(Exception):
    """Raised where another machine has loaded the same batch, or is loading it: ours was rolled back."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to answer
    order = msgspec.json.decode(sys.stdin.readline(), type=LoaderOrder)
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=[sys.stdin, lines], daemon=True).start()
    engine = open_engine(order.engine)
    loader = loader_for(order.workload)
    try:
        for answer in load(engine, loader, order, _batches(lines)):
            _send(answer)
    except (StallmarkError, CallFailed) as error:
        _send(Failed(str(error)))


def load(engine: Engine, loader: Loader, order: LoaderOrder, batches: Iterator[Batch]) -> Iterator[Answer]:
    """Load batch after batch; yields Opened, also after each batch that someone else has loaded, and Written."""
    coming = _begun_ahead(lambda batch: loader.supplied(order.folders, order.seed, order.scale, batch), batches)
    while True:
        try:
            with engine.bulk_writer() as writer:
                yield Opened(writer.transactional, writer.limited)
                for batch, pieces in coming:
                    yield Written(*load_batch(writer, loader, order.scale, batch, pieces))
                return
        except AlreadyLoaded:
            yield Written(0, 0)


def _begun_ahead(
    make: Callable[[Batch], Iterator[Piece]], batches: Iterator[Batch]
) -> Iterator[tuple[Batch, Iterator[Piece]]]:
    """Yield each batch with its pieces; make the first piece of the next batch while one is written.

    The server waits for its disks meanwhile. A generator that makes a batch at once has most of its work there."""

    def begin() -> tuple[Batch, Iterator[Piece]] | None:
        if (batch := next(batches, None)) is None:
            return None
        pieces = iter(make(batch))
        return batch, chain(list(islice(pieces, 1)), pieces)

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(begin)
        while loaded := coming.result():
            coming = pool.submit(begin)
            yield loaded


def load_batch(
    writer: BulkWriter, loader: Loader, scale: Scale, batch: Batch, pieces: Iterator[Piece]
) -> tuple[int, int]:
    """Write a batch and its ledger row in one transaction, the ledger row first.

    Another process with the same batch waits at the ledger row, instead of writing all rows a second time. A writer
    without such transactions marks the batch as begun in the ledger, so that the remains after a kill are removed
    first.
    """
    if writer.transactional:
        _execute(writer, LEDGER_BEGIN.format(batch=batch))
    else:
        _execute(writer, _begin(loader, scale, batch))
        writer.commit()
    rows = size = 0
    for table, piece in pieces:
        writer.write(table, piece)
        rows += piece.num_rows
        size += piece.nbytes
    _execute(writer, LEDGER_END.format(batch=batch, rows=rows, size=size))
    writer.commit()
    return rows, size


def _begin(loader: Loader, scale: Scale, batch: Batch) -> str:
    text = sql_file.read(__package__, "begin_batch.mssql")
    of_batch = loader.rows_of(scale, batch)
    remove = " ".join(f"DELETE FROM {table} WHERE {condition};" for table, condition in of_batch.items())
    return text.format(group=batch.group, number=batch.number, remove=remove)


def _execute(writer: BulkWriter, statement: str) -> None:
    try:
        writer.execute(statement)
    except CallFailed as error:
        if error.code in NOT_OURS:
            raise AlreadyLoaded from None
        raise


def _listen(source: TextIO, lines: "SimpleQueue[str]") -> None:
    for line in source:
        lines.put(line)
    # The parent is done with us, or dead. The main thread may be inside a long COPY: do not wait for it.
    os._exit(0)


def _batches(lines: "SimpleQueue[str]") -> Iterator[Batch]:
    while True:
        yield msgspec.json.decode(lines.get(), type=Batch)


def _send(answer: Answer) -> None:
    print(msgspec.json.encode(answer).decode(), flush=True)


if __name__ == "__main__":
    main()

"""Loader processes: each makes batches and writes each batch, with its ledger row, in one transaction. Below, the pool
that hands batches out to them, takes the answers, and leaves no process behind.

A process is started as `python -m stallmark.loaders.worker`. It reads lines of JSON: first a LoaderOrder (the engine's
secrets come this way, not in the arguments), then a Batch per line, and answers each with a line. It ends with its
parent, whose end closes its input; the server then rolls back what was under way.

Its imports are its start-up time: no SQLAlchemy here.
"""

import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain, islice
from queue import SimpleQueue
from typing import IO, Any, TextIO

import msgspec

from stallmark.engines import open_engine, sql_file
from stallmark.engines.base import BulkWriter, Engine
from stallmark.errors import CallFailed, StallmarkError
from stallmark.loaders import Batch, Loader, Piece, Scale, loader_for
from stallmark.processes import exit_clause, kill, start_module, write_order

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


_ANSWER: msgspec.json.Decoder = msgspec.json.Decoder(Answer)

_NOTHING = "Nothing of this batch was kept; the same build again continues with what is missing."
_SOME = (
    "Rows of this batch may have been kept, and it is noted as begun: the same build again removes them, and continues "
    "with what is missing."
)


@dataclass(frozen=True)
class Loaded:
    """A batch that is in; `limited`: why it was written more slowly than the engine can, if so."""

    batch: Batch
    rows: int
    bytes: int
    limited: str | None


def load_batches(
    engine: Engine, workload: str, seed: int, scale: Scale, batches: Sequence[Batch], workers: int
) -> Generator[Loaded, None, None]:
    """Load `batches` with `workers` processes; yields each as it is committed. A process knows the batch after the one
    that it is at, and begins to make its rows.

    Raises StallmarkError when a batch fails, or a process with one dies. However it is left, the processes are gone.
    """
    with loader_for(workload).supply(scale, batches, workers) as supply:
        order = LoaderOrder(engine.spec(), workload, seed, dict(scale), dict(supply.folders))
        yield from _hand_out(order, supply.batches, workers)


def _hand_out(order: LoaderOrder, waiting: Iterator[Batch], workers: int) -> Iterator[Loaded]:
    answers: SimpleQueue[tuple[_Worker, str]] = SimpleQueue()
    pool: list[_Worker] = []
    try:
        for batch in islice(waiting, workers):
            pool.append(_Worker(order, answers))
            pool[-1].give(batch)
        for worker, batch in zip(pool, waiting, strict=False):
            worker.give(batch)
        while any(worker.batches for worker in pool):
            worker, line = answers.get()
            if not worker.batches:
                continue  # it waits for the others: all that it did is in, however it ends
            answer = _ANSWER.decode(line) if line else Failed(worker.end_in_words())
            if isinstance(answer, Opened):
                worker.kept, worker.limited = _NOTHING if answer.transactional else _SOME, answer.limited
                continue
            if isinstance(answer, Failed):
                reason = answer.reason
                reason += "" if reason.endswith(("?", ".")) else "."
                batch = worker.batches[0]
                raise StallmarkError(f"Loading {batch.group}, batch {batch.number}, failed: {reason} {worker.kept}")
            yield Loaded(worker.batches.popleft(), answer.rows, answer.bytes, worker.limited)
            if following := next(waiting, None):
                worker.give(following)
    finally:
        for worker in pool:
            worker.end()


@dataclass(eq=False)
class _Worker:
    order: LoaderOrder
    answers: "SimpleQueue[tuple[_Worker, str]]"
    batches: deque[Batch] = field(default_factory=deque)  # the one that it is at, and the next
    kept: str = _NOTHING  # part of a failed batch that stays, until the process has opened the server
    limited: str | None = None
    _process: subprocess.Popen = field(init=False)
    _stderr: IO[str] = field(init=False)

    def __post_init__(self) -> None:
        self._stderr = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by `end`)
        self._process = start_module(
            "stallmark.loaders.worker", stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, text=True
        )
        threading.Thread(target=self._listen, daemon=True).start()
        self._send(self.order)

    def give(self, batch: Batch) -> None:
        self.batches.append(batch)
        self._send(batch)

    def end(self) -> None:
        """End the process now; the server rolls back a batch that is under way."""
        kill(self._process)
        self._stderr.close()

    def end_in_words(self) -> str:
        code = self._process.wait()
        self._stderr.seek(0)
        last = self._stderr.read().strip().splitlines()[-1:]
        return f"the loader process {self._process.pid} {exit_clause(code)}" + "".join(f" ({line})" for line in last)

    def _send(self, message: Any) -> None:
        assert self._process.stdin
        write_order(self._process.stdin, msgspec.json.encode(message).decode() + "\n")

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self.answers.put((self, line))
        self.answers.put((self, ""))


if __name__ == "__main__":
    main()

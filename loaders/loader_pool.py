"""A pool of loader processes: hand out batches, take the answers, and leave no process behind."""

import subprocess
import tempfile
import threading
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from queue import SimpleQueue
from typing import IO, Any

import msgspec

from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.loaders.plan import Batch, Scale, loader_for
from stallmark.loaders.worker import Answer, Failed, LoaderOrder, Opened
from stallmark.processes import exit_clause, kill, start_module, write_order

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

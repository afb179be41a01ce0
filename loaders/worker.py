"""A loader process: makes batches and writes each, with its ledger row, in one transaction.

Started as `python -m stallmark.loaders.worker`. It reads JSON lines: first what to load and where (the
engine's secrets come this way, not in the arguments), then one batch per line, and answers each with a line.
It ends with its parent, whose end closes its input; the server then rolls back what was under way.

Its imports are its start-up time: no SQLAlchemy here.
"""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import Any, TextIO

from stallmark.driver.engines import open_engine
from stallmark.driver.engines.base import BulkWriter, Engine
from stallmark.driver.engines.errors import CallFailed, StallmarkError
from stallmark.loaders.plan import Batch, Loader, Scale, loader_for

# Literals, because a bulk writer takes no parameters; group names are ours.
LEDGER_ENTRY = """\
INSERT INTO stallmark.ledger (table_group, batch, row_count, byte_count)
VALUES ('{batch.group}', {batch.number}, {rows}, {size})"""

# PostgreSQL's and SQL Server's codes for a key that is there already.
DUPLICATE_KEY = {"23505", "2627", "2601"}


class AlreadyLoaded(Exception):
    """Another machine has put the same batch in meanwhile: ours was rolled back."""


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent to answer
    order = json.loads(sys.stdin.readline())
    lines: SimpleQueue[str] = SimpleQueue()
    threading.Thread(target=_listen, args=[sys.stdin, lines], daemon=True).start()
    engine = open_engine(order["engine"])
    loader = loader_for(order["workload"])
    try:
        for answer in load(engine, loader, order["seed"], order["scale"], _batches(lines)):
            _say(answer)
    except (StallmarkError, CallFailed) as error:
        _say({"failed": str(error)})


def load(
    engine: Engine, loader: Loader, seed: int, scale: Scale, batches: Iterator[Batch]
) -> Iterator[dict[str, Any]]:
    """Load batch after batch; yields rows and bytes of each, 0 for one that somebody else has loaded."""
    while True:
        try:
            with engine.bulk_writer() as writer:
                for batch in batches:
                    rows, size = load_batch(writer, loader, seed, scale, batch)
                    yield {"rows": rows, "bytes": size}
                return
        except AlreadyLoaded:
            yield {"rows": 0, "bytes": 0}


def load_batch(writer: BulkWriter, loader: Loader, seed: int, scale: Scale, batch: Batch) -> tuple[int, int]:
    rows = size = 0
    for table, piece in loader.batch(seed, scale, batch):
        writer.write(table, piece)
        rows += piece.num_rows
        size += piece.nbytes
    try:
        writer.execute(LEDGER_ENTRY.format(batch=batch, rows=rows, size=size))
    except CallFailed as error:
        if error.code in DUPLICATE_KEY:
            raise AlreadyLoaded from None
        raise
    writer.commit()
    return rows, size


def _listen(source: TextIO, lines: "SimpleQueue[str]") -> None:
    for line in source:
        lines.put(line)
    # The parent is done with us, or dead. The main thread may be inside a long COPY: do not wait for it.
    os._exit(0)


def _batches(lines: "SimpleQueue[str]") -> Iterator[Batch]:
    while True:
        yield Batch(*json.loads(lines.get()))


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

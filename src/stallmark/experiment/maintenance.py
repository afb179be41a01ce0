"""Maintenance beside the users of a run: the same statement over and over, from when measuring begins until the end."""

import threading
import time
from collections.abc import Callable

from stallmark.engines.abilities import required
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed
from stallmark.record.schema import MAINTENANCE
from stallmark.record.writer import RecordWriter
from stallmark.scenarios.variant import During

FAREWELL_S = 30.0
CANCEL_EVERY_S = 0.2


class ConcurrentMaintenance:
    """One thread and one connection. A statement that fails ends it; its row has the error."""

    def __init__(self, during: During, engine: Engine, writer: RecordWriter, clock: Callable[[], float]):
        self._kind, self._writer, self._clock = during.kind, writer, clock
        writer.add_table("maintenance", MAINTENANCE)
        self._work = required(engine.maintenance[during.kind]).open(during.what)
        self._stopping = threading.Event()
        self._rows: list[dict[str, object]] = []
        self._thread = threading.Thread(target=self._main, name="maintenance", daemon=True)

    def begin(self) -> None:
        """Begin, once; later calls do nothing."""
        if self._thread.ident is None:
            self._thread.start()

    def finish(self) -> None:
        """Give up what is under way, and write down what was done."""
        self._stopping.set()
        give_up_s = time.monotonic() + FAREWELL_S
        while self._thread.is_alive() and time.monotonic() < give_up_s:
            self._work.cancel()  # again and again: a server forgets a cancel that comes before the statement
            self._thread.join(CANCEL_EVERY_S)
        if not self._thread.is_alive():  # a driver may crash if a connection in use is closed
            self._work.close()
        self._writer.append("maintenance", self._rows)

    def _main(self) -> None:
        while not self._stopping.is_set():
            started, error = self._clock(), None
            try:
                self._work.execute()
            except CallFailed as failure:
                error = f"{failure.message} ({failure.code})"
            cut = self._stopping.is_set() and error is not None
            self._rows.append(
                {
                    "kind": self._kind,
                    "started_s": started,
                    "seconds": self._clock() - started,
                    "finished": error is None,
                    "error": None if cut else error,
                }
            )
            if error and not cut:
                return

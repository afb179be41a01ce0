"""A periodic check that the server is still held for this run: after a restart of the server it is not."""

import threading
from collections.abc import Callable

from stallmark.errors import StallmarkError, as_reason

EVERY_S = 15.0


class Watch:
    """A thread that calls `check` every EVERY_S seconds while entered. The check may take seconds, for which a run
    cannot wait.

    `why` is the error that it raised, as a phrase; None as long as it raises nothing.
    """

    def __init__(self, check: Callable[[], None]):
        self.why: str | None = None
        self._check = check
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while self.why is None and not self._stopping.wait(EVERY_S):
            try:
                self._check()
            except StallmarkError as error:
                self.why = as_reason(error)

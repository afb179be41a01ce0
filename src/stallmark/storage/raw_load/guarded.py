"""A running program that does I/O, with a guard, which ends it when we end."""

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from stallmark.errors import StallmarkError, as_reason
from stallmark.processes import hang_up, how_ended, kill, killed_by, of_guarded, start_guarded
from stallmark.redact import environment as environment_without_secrets
from stallmark.storage.probe.tool import clean, reason_in
from stallmark.storage.raw_load.arrivals import GRACE_S
from stallmark.storage.raw_load.reports import documents

_PATIENCE_S = GRACE_S + 5.0
"""Seconds after which a guard that was told to end is killed."""


class GuardedProgram:
    """A running `fio`, or our own program. `environment` is that of an emulated array, or empty."""

    def __init__(self, argv: Sequence[str], environment: Mapping[str, str]):
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._guard = start_guarded(
            "raw-load",
            argv,
            environment,
            [(signal.SIGTERM, GRACE_S), (signal.SIGKILL, None)],
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=clean(environment_without_secrets()),
        )
        assert self._guard.stdin and self._guard.stdout
        self._stdin, self._stdout = self._guard.stdin, self._guard.stdout
        self._said: list[str] = []
        self._unreadable: str | None = None
        self._stopped: float | None = None
        self._reader = threading.Thread(target=self._read, name="raw-load", daemon=True)
        self._reader.start()

    @property
    def ended(self) -> bool:
        """Tell whether it has ended, and all that it reported was heard."""
        if self._stopped is not None and time.monotonic() - self._stopped > _PATIENCE_S:
            kill(self._guard)
        code = self._guard.poll()
        if code is not None and self._reader.is_alive():  # its program goes on without it, in the session that it had
            with suppress(OSError):
                os.killpg(self._guard.pid, signal.SIGKILL)
        return code is not None and not self._reader.is_alive()

    @property
    def failed(self) -> bool:
        """Tell whether it has ended otherwise than with its work done."""
        return bool(self._guard.poll())

    def stop(self) -> None:
        """Tell it to end, and do not wait for that."""
        if self._stopped is None:
            self._stopped = time.monotonic()
            hang_up(self._stdin)

    def wait(self) -> None:
        """Wait until it has ended, once it was told to."""
        self._reader.join(_PATIENCE_S)
        while not self.ended:
            time.sleep(0.05)

    def why(self) -> str:
        """Return why it ended before it was told to, as the end of a sentence."""
        if self._unreadable:  # then we have stopped it ourselves, by a signal
            return self._unreadable
        self._errors.seek(0)
        said = "\n".join([self._errors.read().decode(errors="replace"), *self._said])
        code = self._guard.poll()
        if killed_by(code):
            return f"its guard {how_ended(code)}"
        if killed_by(of_guarded(code)):
            return f"its program {how_ended(of_guarded(code))}"
        return as_reason(reason_in(said))

    def hear(self, document: dict[str, Any]) -> None:
        """Take a document of its output, in a thread of its own. Raise StallmarkError for one that cannot be read."""

    def _read(self) -> None:
        """Read reports until there are no more: a thread's work, so that each has the time at which it came."""
        try:
            for found in documents(line.decode(errors="replace") for line in self._stdout):
                if isinstance(found, str):
                    self._said.append(found)
                else:
                    self.hear(found)
        except (StallmarkError, ValueError) as error:
            self._unreadable = as_reason(error)
            self.stop()

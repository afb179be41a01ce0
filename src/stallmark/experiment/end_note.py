"""The note in an experiment's last record that no other run followed, though one was to, and why."""

from contextlib import suppress
from pathlib import Path

from stallmark.errors import CallFailed, StallmarkError, as_reason
from stallmark.record.files import Reserve
from stallmark.record.manifest import read_manifest, write_manifest
from stallmark.record.manifest.course import Ended
from stallmark.stopping import StopSignal


class EndNote:
    """The note of one experiment. It is written before a variant is prepared, because a kill leaves no time for it, and
    taken back when that variant's record is there. Space for its reason is kept, as a record keeps its own."""

    def __init__(self) -> None:
        self._last: Path | None = None
        self._before = ""
        self._reserve: Reserve | None = None

    @property
    def applies(self) -> bool:
        """Tell whether a run is being prepared after which there is a record of another."""
        return self._last is not None

    def preparing(self, last: Path | None, variant: str) -> None:
        """Note that a variant is being prepared; `last` is the folder of the record made last, None where it is the
        first."""
        self._last, self._before = last, variant
        if last:
            self._reserve = self._reserve or Reserve(last.parent)
        self._write(Ended(before=variant))

    def opened(self) -> None:
        """Take the note back: the variant has its record, which says itself how it ends."""
        self._write(None)
        self._last = None

    def ended(self, error: BaseException) -> None:
        """Write down for which error the variant was not run."""
        self.free()
        foreseen = isinstance(error, StallmarkError | CallFailed | OSError | StopSignal)
        because = as_reason(error) if foreseen else "Stallmark ended unexpectedly"
        self._write(Ended(before=self._before, because=because))

    def free(self) -> None:
        if self._reserve:
            self._reserve.free()

    def _write(self, ended: Ended | None) -> None:
        if self._last:
            with suppress(OSError, StallmarkError):  # somebody may have removed that record; nothing else hangs on it
                write_manifest(self._last, read_manifest(self._last).changed(ended=ended))

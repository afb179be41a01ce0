"""Space on a record's disk that is kept for closing it: where the disk fills, the record itself still says so."""

import os
import tempfile
from pathlib import Path

from stallmark.errors import named

RESERVED_BYTES = 4 << 20
"""More than the largest manifest takes twice: the new one is written beside the old one."""


class Reserve:
    """Space that is taken in a folder until it is freed. The file has no name there: a kill leaves none behind."""

    def __init__(self, folder: Path):
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by `free`)
        try:
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file.fileno(), 0, RESERVED_BYTES)
            else:
                self._file.write(bytes(RESERVED_BYTES))
                self._file.flush()
        except OSError as error:
            self._file.close()
            raise named(error, folder) from None

    def free(self) -> None:
        """Give the space back. A second call does nothing."""
        self._file.close()

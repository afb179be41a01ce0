"""The outcome of direct I/O in a folder, as it was tried before a measurement."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DirectIo:
    """Where I/O with O_DIRECT went: past the page cache of this machine or through it. `file_system`: its type, with
    `data=journal` if it is mounted so. `loop`: the loop device below, whose file is read and written through the cache.
    """

    goes: Literal["past", "through", "unknown"]
    file_system: str | None = None
    loop: str | None = None

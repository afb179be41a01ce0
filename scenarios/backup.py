"""The `backup:` section of a scenario: how SQL Server writes and reads the copy that every run starts from.

backup: {folder: 'B:\\backup', files: 4, compression: on, buffers: 50, transfer_size: 4MiB}
"""

from typing import Annotated, Literal

from pydantic import Field

from stallmark.engines.abilities import BackupOptions
from stallmark.quantities import Size
from stallmark.scenarios.section import Section

TRANSFER = 64 * 1024


class BackupChoice(Section):
    folder: Annotated[str, Field(min_length=1)] | None = None
    """A folder of the server, by default its backup folder."""
    files: Annotated[int, Field(ge=1, le=64, strict=True)] = 1
    """The files that it is striped over."""
    compression: Literal["on", "off", "ms_xpress", "qat_deflate", "zstd"] | None = None
    """Compress it, or by which algorithm (SQL Server 2022; `zstd` 2025); by default as the server is configured."""
    buffers: Annotated[int, Field(ge=1, strict=True)] | None = None
    """BUFFERCOUNT; by default the server's choice."""
    transfer_size: Annotated[Size, Field(ge=TRANSFER, le=64 * TRANSFER, multiple_of=TRANSFER)] | None = None
    """MAXTRANSFERSIZE, in steps of 64KiB up to 4MiB; by default the server's choice."""

    def options(self) -> BackupOptions:
        return BackupOptions(self.folder, self.files, self.compression, self.buffers, self.transfer_size)

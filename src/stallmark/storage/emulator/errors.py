"""What can be wrong with a slow device; each message is one sentence that says what to do."""

from __future__ import annotations

from stallmark.errors import StallmarkError


class SlowDeviceError(StallmarkError):
    """A slow device cannot be had."""


class NoCompiler(SlowDeviceError):
    """The interposer could not be compiled."""


class UnsupportedSystem(SlowDeviceError):
    """This operating system cannot interpose I/O the way slow devices need."""

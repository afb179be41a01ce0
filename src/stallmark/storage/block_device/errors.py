"""What can be wrong with a lab; each message is one sentence that says what to do."""

from __future__ import annotations

from stallmark.errors import StallmarkError


class LabError(StallmarkError):
    """A lab cannot be had, or not be changed or destroyed as it is."""

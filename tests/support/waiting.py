"""Waiting for what must become true, however slow the machine is."""

import time
from collections.abc import Callable
from typing import TypeVar

TIMEOUT_S = 150  # only a broken thing, or a very busy machine, takes so long

Value = TypeVar("Value")


def eventually(holds: Callable[[], Value], what: str = "what must") -> Value:
    """Wait until something becomes true that must; returns it. To look costs a tenth of a core at most: what is waited
    for needs the processor, too."""
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        began = time.monotonic()
        if value := holds():
            return value
        now = time.monotonic()
        assert now < deadline, f"never happened: {what}"
        time.sleep(min(max(0.01, 9 * (now - began)), 0.5))

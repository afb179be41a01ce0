"""Waiting for what must become true, however slow the machine is."""

import time
from collections.abc import Callable
from typing import TypeVar

PATIENCE_S = 150  # only a broken thing, or a very busy machine, takes so long

Value = TypeVar("Value")


def eventually(holds: Callable[[], Value], what: str = "what must") -> Value:
    """Wait until something becomes true that must; returns it."""
    deadline = time.monotonic() + PATIENCE_S
    while not (value := holds()):
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.01)
    return value

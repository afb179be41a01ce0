"""A small scenario that is right."""

from support.small_scenario import path, read

__all__ = ["path", "read"]

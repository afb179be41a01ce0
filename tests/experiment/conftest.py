"""A small scenario that is right, and folders for servers."""

from support.memory import tmp_path
from support.small_scenario import path, read

__all__ = ["path", "read", "tmp_path"]

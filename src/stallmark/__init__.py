"""Stallmark: what storage and memory do to a real database."""

from importlib.metadata import version

__version__ = version("stallmark")

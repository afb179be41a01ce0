"""The replay of a profile's I/O: its busiest windows as raw I/O, at ever higher multiples, until a service level
breaks.
"""

from stallmark.storage.replay.search import level_s, replay

__all__ = ["level_s", "replay"]

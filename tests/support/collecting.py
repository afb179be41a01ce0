"""A collector, opened and asked."""

from collections.abc import Iterator
from contextlib import contextmanager

from stallmark.collectors.sampler import Collector, Row


@contextmanager
def opened(collector: Collector) -> Iterator[Collector]:
    collector.open()
    try:
        yield collector
    finally:
        collector.close()


def read(collector: Collector) -> list[Row]:
    with opened(collector):
        return collector.sample(0.0)

"""Sizes, shares and durations as people write them in a scenario: `64MiB`, `25 %`, `90s`."""

from dataclasses import dataclass
from typing import Annotated, Any

import humanize
from pydantic import BeforeValidator, ByteSize, PlainSerializer, TypeAdapter, ValidationError
from pytimeparse2 import parse

_BYTES = TypeAdapter(ByteSize)


@dataclass(frozen=True)
class PoolSize:
    """A buffer pool: a number of bytes, or a share of the database as loaded."""

    size_bytes: int | None = None
    share: float | None = None

    def resolve(self, database_bytes: int) -> int:
        """In bytes, rounded up to whole MiB: servers keep their pool in such steps."""
        exact = self.size_bytes if self.size_bytes is not None else (self.share or 0) * database_bytes
        return -(-int(exact) // 1024**2) * 1024**2

    def __str__(self) -> str:
        if self.share is not None:
            return f"{self.share * 100:g} %"
        return humanize.naturalsize(self.size_bytes or 0, binary=True, format="%g")


def _pool(value: Any) -> PoolSize:
    if isinstance(value, PoolSize):
        return value
    text = str(value).strip()
    if text.endswith("%"):
        try:
            share = float(text[:-1]) / 100
        except ValueError:
            raise ValueError(f"{text!r} is no share: write it as 25 %") from None
        if not 0 < share <= 10:
            raise ValueError(f"{text} is no share of the data: write 1 % to 1000 %")
        return PoolSize(share=share)
    if text.isdigit():
        raise ValueError(f"{text} has no unit: write {text}MiB or {text} %")
    try:
        size = int(_BYTES.validate_python(text))
    except ValidationError:
        raise ValueError(f"{text!r} is no size: write it as 64MiB, 2GiB or 25 %") from None
    if size <= 0:
        raise ValueError(f"{text} is no size of a buffer pool: write more than 0")
    return PoolSize(size_bytes=size)


def _seconds(value: Any) -> float:
    if isinstance(value, int | float):
        raise ValueError(f"{value} has no unit: write {value}s or {value}min")
    # pytimeparse2 reads a bare number as seconds: a unit is asked for all the same.
    seconds = (
        None
        if str(value).strip().replace(".", "", 1).isdigit()
        else parse(str(value).replace("ms", "milliseconds"))
    )
    if seconds is None:
        raise ValueError(f"{value!r} is no duration: write it as 500ms, 90s, 5min or 1h30m")
    return float(seconds)


def _duration(seconds: float) -> str:
    return f"{seconds * 1000:g}ms" if 0 < seconds < 1 else f"{seconds:g}s"


Pool = Annotated[PoolSize, BeforeValidator(_pool), PlainSerializer(str)]
Seconds = Annotated[float, BeforeValidator(_seconds), PlainSerializer(_duration)]

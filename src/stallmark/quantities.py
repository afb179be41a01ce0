"""Sizes, shares, rates and durations as people write them, in scenarios and on the command line: `64MiB`, `25 %`,
`200/s`, `90s`."""

import math
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BeforeValidator, ByteSize, Field, PlainSerializer, TypeAdapter, WithJsonSchema
from pytimeparse2 import parse

_BYTES = TypeAdapter(ByteSize)
_UNITS = {"GiB": 1024**3, "MiB": 1024**2, "KiB": 1024, "B": 1}
_MOST_IOS_PER_S, _LEAST_BYTES_PER_S = 1_000_000, 10**6


@dataclass(frozen=True)
class PoolSize:
    """A buffer pool: a number of bytes, or a share of the database as loaded."""

    size_bytes: int | None = None
    share: float | None = None

    def resolve(self, database_bytes: int) -> int:
        """Return it in bytes, rounded up to whole MiB: servers keep their pool in such steps."""
        # Negated twice, a floor division rounds up, and does so in whole numbers.
        exact = self.size_bytes if self.size_bytes is not None else (self.share or 0) * database_bytes
        return -(-int(exact) // 1024**2) * 1024**2

    def __str__(self) -> str:
        if self.share is not None:
            return f"{self.share * 100:.12g} %"
        size = self.size_bytes or 0
        unit, factor = next((unit, factor) for unit, factor in _UNITS.items() if size % factor == 0)
        return f"{size // factor}{unit}"


@dataclass(frozen=True)
class IoRate:
    """A rate of I/O: a number per second, or bytes per second; neither is as fast as it goes."""

    ios_per_s: int | None = None
    bytes_per_s: int | None = None

    def __str__(self) -> str:
        if self.bytes_per_s is not None:
            return f"{self.bytes_per_s / 1e6:.12g} MB/s"
        return f"{self.ios_per_s}/s"


def parse_size(value: Any, like: str = "64MiB or 20GiB") -> int:
    """Return the bytes that `64MiB` or `1.5GB` means; 0 needs no unit. Raises ValueError, with what to write."""
    text = _as_text(value)
    if _is_number(text) and float(text):
        raise ValueError(f"{text} has no unit: write {text}MiB or {text}GiB")
    try:
        # pydantic ignores the sign and takes `25 %` for 25 bytes.
        if not text.replace(" ", "").replace(".", "").isalnum():
            raise ValueError
        return int(_BYTES.validate_python(text))
    except ValueError:
        raise ValueError(f"{text!r} is not a size: write it as {like}") from None


def parse_share(value: Any) -> float:
    """Return the share that `25 %` means, 0.25; from more than 0 to 1000 %. Raises ValueError, with what to write."""
    text = _as_text(value)
    try:
        share = float(text.removesuffix("%")) / 100
    except ValueError:
        raise ValueError(f"{text!r} is not a share: write it as 25 %") from None
    if not 0 < share <= 10:
        raise ValueError(f"{text} is not a share of the data: write 1 % to 1000 %")
    return share


def _pool(value: Any) -> PoolSize:
    if isinstance(value, PoolSize):
        return value
    text = _as_text(value)
    if text.endswith("%"):
        return PoolSize(share=parse_share(text))
    if _is_number(text):
        raise ValueError(f"{text} has no unit: write {text}MiB or {text} %")
    size = parse_size(text, like="64MiB, 2GiB or 25 %")
    if size <= 0:
        raise ValueError(f"{text} is not a size: write more than 0")
    return PoolSize(size_bytes=size)


def _size(value: Any) -> int:
    """Return a number of bytes that is given as such, not as a share."""
    size = _pool(value)
    if size.size_bytes is None:
        raise ValueError(f"{value} is a share, and of what is not known here: write a size, 64GiB or 800GB")
    return size.size_bytes


def _rate(value: Any) -> IoRate:
    if isinstance(value, IoRate):
        return value
    written = _as_text(value)
    text = written.removesuffix("/s").strip()
    if not written.endswith("/s") or not text:
        raise ValueError(f"{written!r} is not a rate: write 200/s for I/Os, or 100 MB/s")
    if _is_number(text):
        if not (float(text).is_integer() and 1 <= float(text) <= _MOST_IOS_PER_S):
            raise ValueError(f"{written} is not a rate of I/Os: write a whole number, 1/s to {_MOST_IOS_PER_S}/s")
        return IoRate(ios_per_s=int(float(text)))
    size = parse_size(text, like="100 MB/s or 200/s")
    if size < _LEAST_BYTES_PER_S:
        raise ValueError(f"{written} is too slow to be a load: write 1 MB/s or more")
    return IoRate(bytes_per_s=size)


def parse_seconds(value: Any) -> float:
    """Return the seconds that `90s`, `5min` or `1h30m` means. Raise ValueError for what has no unit."""
    text = _as_text(value)
    if _is_number(text):
        raise ValueError(f"{text} has no unit: write {text}s or {text}min")
    # pytimeparse2 does not know "ms", and reads 1:30 as minutes or as hours.
    seconds = None if ":" in text else parse(text.replace("ms", "milliseconds"))
    if seconds is None:
        raise ValueError(f"{text!r} is not a duration: write it as 500ms, 90s, 5min or 1h30m")
    return float(seconds)


def _as_text(value: Any) -> str:
    """Return the text of a quantity. An empty value in YAML is None."""
    return "" if value is None else in_yaml(value).strip()


def in_yaml(value: Any) -> str:
    """Return a value as a user writes it in YAML, on one line."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{in_yaml(key)}: {in_yaml(item)}' for key, item in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_yaml, value))}]"
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def finite(text: str) -> float:
    """Parse a finite number. Raise ValueError for anything else, NaN and infinity included."""
    if not _is_number(text):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def parse_milliseconds(text: str) -> float:
    """Return the milliseconds of `20ms`, `1s` or a plain number. Raises ValueError."""
    return float(text) if _is_number(text) else parse_seconds(text) * 1000


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def write_duration(seconds: float) -> str:
    """Return a duration as a scenario has it."""
    return f"{seconds * 1000:.12g}ms" if 0 < seconds < 1 else f"{seconds:.12g}s"


_write_size = PlainSerializer(lambda size: str(PoolSize(size_bytes=size)))
_SIZE = WithJsonSchema({"type": ["string", "integer"], "examples": ["64GiB", "800GB"]})
_POOL = WithJsonSchema({"type": "string", "examples": ["2GiB", "25 %"]})
_SECONDS = WithJsonSchema({"type": "string", "examples": ["90s", "500ms", "5min", "1h30m"]})

_RATE = WithJsonSchema({"type": "string", "examples": ["200/s", "100 MB/s"]})

Size = Annotated[int, BeforeValidator(_size), _write_size, _SIZE]
SizeOrZero = Annotated[int, BeforeValidator(parse_size), _write_size, _SIZE]
"""May be 0."""
Pool = Annotated[PoolSize, BeforeValidator(_pool), PlainSerializer(str), _POOL]
Rate = Annotated[IoRate, BeforeValidator(_rate), PlainSerializer(str), _RATE]
LONGEST_S = 100 * 86_400
"""The longest that a scenario may last, or wait: each second of a run takes memory."""
Seconds = Annotated[
    float, BeforeValidator(parse_seconds), Field(le=LONGEST_S), PlainSerializer(write_duration), _SECONDS
]

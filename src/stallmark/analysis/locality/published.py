"""Published figures on how brokerage loads and production databases read, to be shown beside those of the brokerage."""

from dataclasses import dataclass
from enum import StrEnum


class Quantity(StrEnum):
    """A figure that a load has too."""

    SLOPE = "slope"
    """Of log(misses) over log(pool)."""
    MISSES = "misses"
    """The share of requests that the pool does not answer, by its share of the data."""
    READ_WRITE = "read_write"
    """Reads per write."""
    READ_BYTES = "read_bytes"
    """Bytes per I/O."""


@dataclass(frozen=True)
class Published:
    """A published figure: a `low` and `high` end, alike for a single one, or `points` of (pool ÷ data, value)."""

    quantity: Quantity
    of: str
    source: str
    low: float | None = None
    high: float | None = None
    points: tuple[tuple[float, float], ...] = ()


_HITS = ((0.027, 0.334), (0.059, 0.44), (0.076, 0.53), (0.083, 0.56), (0.088, 0.59), (0.53, 0.999))

OF_BROKERAGE = (
    Published(Quantity.SLOPE, "ten production databases", "Hsu, Smith, Young: ACM TODS 26 (2001)", -0.5, -0.5),
    Published(
        Quantity.MISSES,
        "DBT-5, PostgreSQL 18.4, 300 days",
        "github.com/markwkm/dbt5-sizing-exercise",
        points=tuple((pool, round(1 - hits, 3)) for pool, hits in _HITS),
    ),
    Published(Quantity.READ_WRITE, "TPC-E", "Chen et al.: SIGMOD Record 39 (2010)", 9.7, 9.7),
    Published(Quantity.READ_BYTES, "a TPC-E-like load", "Demartek for HPE", 8100, 8200),
)


def published_for(workload: str) -> tuple[Published, ...]:
    """Return the figures that are published on the kind of load that a workload is; none for most."""
    return OF_BROKERAGE if workload == "brokerage" else ()

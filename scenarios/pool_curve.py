"""A curve of memory in place of one buffer pool: `buffer_pool: {curve: auto, from: 2 %, to: 100 %}`."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, Tag, WithJsonSchema

from stallmark.errors import StallmarkError
from stallmark.format import size as written
from stallmark.quantities import Pool, PoolSize, parse_share
from stallmark.scenarios.section import MAPPING, WORD, Section, WordOrMapping
from stallmark.scenarios.variant import Variant
from stallmark.stats.curve_search import Asked

FEWEST, MOST = 5, 24
"""Sizes: fewer tell no error, and more lie closer together than runs are apart."""

Tolerance = Annotated[
    float,
    BeforeValidator(parse_share),
    Field(ge=0.01, le=0.5),
    PlainSerializer(lambda share: f"{share * 100:.12g} %", when_used="json"),
    WithJsonSchema({"type": "string", "examples": ["5 %"], "default": "5 %"}),
]


class PoolCurve(Section):
    """Sizes of the buffer pool that are chosen while the experiment runs, where the curve of memory bends: of one
    variant, that which has no `buffer_pool` of its own."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    curve: Literal["auto"]
    """The only word there is: `auto`."""
    from_: Annotated[Pool, Field(alias="from")]
    """The smallest size, or share of the data."""
    to: Pool
    """The largest."""
    sizes: Annotated[int, Field(ge=FEWEST, le=MOST, strict=True)] = 9
    """The most sizes. Each is run as often as `repeats` says."""
    tolerance: Tolerance = 0.05
    """The share of its largest value within which the curve is to be known; then no further size is chosen."""

    def mistakes(self) -> Iterator[str]:
        a, b = self.from_, self.to
        for low, high in ((a.share, b.share), (a.size_bytes, b.size_bytes)):
            if low is not None and high is not None and low >= high:
                yield f"from {a} is not below to {b}: a curve needs two sizes"

    def asked(self, data_bytes: int) -> Asked:
        """Return the curve in bytes, of data that large. Raise StallmarkError where that leaves no two sizes."""
        low, high = self.from_.resolve(data_bytes), self.to.resolve(data_bytes)
        if low >= high:
            raise StallmarkError(
                f"buffer_pool: from {self.from_} ({written(low)}) is not below to {self.to} ({written(high)}), of "
                f"{written(data_bytes)} of data: change one of the two, or choose a larger scale."
            )
        return Asked(low, high, self.sizes, self.tolerance)


class Cost(Section):
    """The cost of a GiB of memory and of one of flash, in one currency, with whatever belongs to it."""

    memory: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """The cost of a GiB of memory."""
    flash: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """The cost of a GiB of flash."""


PoolOrCurve = Annotated[Annotated[Pool, Tag(WORD)] | Annotated[PoolCurve, Tag(MAPPING)], WordOrMapping]


def of_size(variant: Variant, size_bytes: int, alone: bool) -> Variant:
    """Return the curve's variant with one size; its name is the size, where there is no other variant (`alone`)."""
    size = written(size_bytes).replace("\u00a0", " ")  # a name is typed
    name = size if alone else f"{variant.name}, {size}"
    return variant.model_copy(update={"name": name, "buffer_pool": PoolSize(size_bytes=size_bytes)})


def not_chosen(variant: Variant, numbers: Iterable[int]) -> Iterator[Variant]:
    """Yield a variant for each size that is not chosen yet, by number. It has no size."""
    for number in numbers:
        yield variant.model_copy(update={"name": f"{variant.name}, size {number}"})

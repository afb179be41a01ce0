"""The wording of the curve of memory, and of memory against flash."""

from collections.abc import Mapping

from stallmark.analysis.finding import Kind
from stallmark.analysis.pool_curve.findings import CurveKind, FlashKind
from stallmark.format import number, per_second, percent, quoted, size
from stallmark.record.manifest.course import ChosenSize
from stallmark.report.text import says
from stallmark.report.text.templates import Format
from stallmark.report.text.terms import indicative, pool, rate

Change = list[float | None]
"""Times as much memory, the change of throughput, and its interval of 95 %."""

SENTENCES: Mapping[Kind, str] = {
    CurveKind.KNOWN: (
        "The curve of memory is known within {tolerance:percent} between its {sizes} sizes: with each left out, the "
        "others missed {facts:missed}."
    ),
    CurveKind.NOT_KNOWN: (
        "The curve of memory is not known within {tolerance:percent} between its {sizes} sizes: with each left out, "
        "the others missed {facts:missed}, most at {worst_bytes:size} ({worst[0]:number} for {worst[1]:per_second})"
        "{spent:not_allowed}."
    ),
    FlashKind.BEYOND_MEMORY: (
        "“{variant}”, {flash_bytes:size} of flash with {pool_bytes:size} of memory, gives more than the "
        "largest memory measured without flash, {largest_bytes:size}{fewest_runs:indicative}."
    ),
    FlashKind.NO_GAIN: (
        "“{variant}”, {flash_bytes:size} of flash with {pool_bytes:size} of memory, gives no more than that "
        "memory without flash{fewest_runs:indicative}."
    ),
}
FORMATS: Mapping[str, Format] = {
    "missed": lambda facts: _missed(facts["error"], facts["reads_error"]),
    "not_allowed": lambda spent: "; more sizes were not allowed (`sizes`)" if spent else "",
}


@says(CurveKind.ENOUGH)
def _(
    pool_bytes: int, pool_share: float | None, per_s: float, primary: str | None, more: Change, less: Change | None,
    smallest: bool, driver_bound: bool, fewest_runs: int,
) -> str:  # fmt: skip
    least = ", the smallest size measured," if smallest else ""
    costs = f"; {_times(less)} costs {_amount(less)}" if less else ""
    said = f"{pool(pool_bytes, pool_share)}{least} is enough: {_times(more)} {_gives(more)}{costs}"
    return f"{said}{indicative(fewest_runs)}."


@says(CurveKind.MAY_BE_ENOUGH)
def _(
    pool_bytes: int, pool_share: float | None, per_s: float, primary: str | None, more: Change, less: Change | None,
    smallest: bool, driver_bound: bool, fewest_runs: int,
) -> str:  # fmt: skip
    remedy = "More repeats narrow it"
    doubt = "these runs cannot tell" if more[2] is None else "the interval is too wide to tell"
    if driver_bound:
        doubt = "the driver was the bottleneck with more memory"
        remedy = "Give the driver more CPU, or another machine"
    costs = f"; {_times(less)} costs {_amount(less)}" if less else ""
    return f"{pool(pool_bytes, pool_share)} may be enough, but {doubt}: {_times(more)} {_gives(more)}{costs}. {remedy}."


@says(CurveKind.STILL_BUYS)
def _(
    pool_bytes: int, pool_share: float | None, per_s: float, primary: str | None, last: Change, fewest_runs: int
) -> str:
    times = last[0] or 0.0
    part = "half of it" if abs(times / 2 - 1) < _TWICE else f"{percent(1 / times)} of it"
    return (
        f"Memory pays up to the largest size measured, {pool(pool_bytes, pool_share)}: it {_gives(last)} than {part}"
        f"{indicative(fewest_runs)}."
    )


@says(CurveKind.FELL)
def _(pools_bytes: list[int], change: float, primary: str | None, fewest_runs: int) -> str:
    a, b = map(size, pools_bytes)
    return (
        f"Throughput fell by {percent(-change)} from {a} of memory to {b}, so no size is called enough: something "
        f"besides memory changed, or runs scatter as much{indicative(fewest_runs)}."
    )


@says(FlashKind.FOR_MEMORY)
def _(
    variant: str, pool_bytes: int, flash_bytes: int, per_s: list[float], primary: str | None, fewest_runs: int,
    equal_bytes: float, equal_range: list[float | None], worth: float, costs: list[float] | None,
) -> str:  # fmt: skip
    if costs:
        memory, flash = map(number, costs)
        better = "flash" if costs[1] < costs[0] else "memory"
        buys = f"At the given cost that memory comes to {memory} and the flash to {flash}, so {better} buys more here"
    else:
        buys = f"So flash buys more here where a GiB of memory costs over {number(1 / worth)} times one of flash"
    return (
        f"{quoted([variant])}, {size(flash_bytes)} of flash with {size(pool_bytes)} of memory, gives as much as "
        f"{size(equal_bytes)} of memory without flash ({_between(*equal_range)}). {buys}"
        f"{indicative(fewest_runs)}."
    )


@says(FlashKind.READS_FOR_MEMORY)
def _(
    pool_bytes: int, read_ms: list[float], per_s: list[float], primary: str | None, equal_bytes: float,
    equal_range: list[float | None],
) -> str:  # fmt: skip
    return (
        f"A prediction: with {size(pool_bytes)} of memory, reads of {number(read_ms[1])} ms in place of "
        f"{number(read_ms[0])} would give {rate(per_s[1], primary)} ({number(per_s[2])} to {number(per_s[3])}), as "
        f"much as {size(equal_bytes)} of memory ({_between(*equal_range)}) on this storage."
    )


def why(chosen: ChosenSize | None) -> str:
    """Return the reason for a size, in a cell of a table."""
    if chosen is None:
        return "given"
    if chosen.why == "bend" and chosen.between_bytes:
        a, b = map(size, chosen.between_bytes)
        return f"bend: up to {percent(chosen.error or 0.0)} off between {a} and {b}"
    if chosen.why == "enough" and chosen.between_bytes:
        a, b = map(size, chosen.between_bytes)
        return f"between {a}, too little, and {b}"
    return {"half": "half of enough", "double": "twice enough"}.get(chosen.why, chosen.why)


METHOD = (
    "A point is the mean of the runs of a size (geometric, of rates), its bar the interval of 95 %, where there are "
    "repeats: for rates by the scatter pooled over all sizes, for reads by that of three runs and more. The line is a "
    "monotone curve: values that go the wrong way are levelled, and a monotone cubic over the logarithm of the size "
    "runs between them. Its error is what it misses of each size between the ends when that is left out."
)

_TWICE = 0.06
"""How far from twice or half as much memory may be that is called so."""


def summary(sizes: list[tuple[int, float, float | None]]) -> str:
    """Return the chart for readers who cannot see it."""
    said = [f"{size(pool_bytes)}: {per_second(per_s)}" + (f", {number(reads)} reads" if reads is not None else "")
            for pool_bytes, per_s, reads in sizes]  # fmt: skip
    return f"{'; '.join(said)}."


def _times(change: Change) -> str:
    times = change[0] or 0.0
    if abs(times / 2 - 1) < _TWICE:
        return "doubling it"
    if abs(times * 2 - 1) < _TWICE:
        return "halving it"
    return f"{number(times)} times as much" if times > 1 else f"{percent(times)} of it"


def _gives(change: Change) -> str:
    gained = change[1] or 0.0
    if gained > 0 and round(gained * 100):
        return f"gives {percent(gained)} more{_interval(change)}"
    return f"gives no more{_interval(change)}"


def _amount(change: Change) -> str:
    """Return what less memory costs: "41 % (38 to 44)"."""
    _, cost, low, high = change
    bounds = f" ({_whole(-high)} to {_whole(-low)})" if low is not None and high is not None else ""
    return f"{percent(-(cost or 0.0))}{bounds}"


def _interval(change: Change) -> str:
    _, _, low, high = change
    return f" ({_whole(low)} to {_whole(high)} %)" if low is not None and high is not None else ""


def _whole(share: float) -> str:
    return f"{share * 100:.0f}".replace("-0", "0").replace("-", "−")


def _missed(error: float, reads_error: float | None) -> str:
    reads = f" and its reads by {percent(reads_error)}" if reads_error is not None else ""
    return f"its throughput by {percent(error)} of the largest value{reads} (root mean square)"


def _between(low: float | None, high: float | None) -> str:
    return f"{size(low)} to {size(high)}" if low and high else f"{size(low or 0)} or more"

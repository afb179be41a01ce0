"""The wording of a ceiling and of the memory curve."""

from collections.abc import Mapping
from typing import Any

from stallmark.analysis.bottleneck import DeviceKind, JudgedDevice
from stallmark.analysis.ceiling import CeilingKind, FlashKind, MailIoKind
from stallmark.analysis.compare.summary import Verdict
from stallmark.analysis.finding import Finding, Kind
from stallmark.analysis.pool_curve import CurveKind
from stallmark.format import (
    count,
    display_name,
    factor,
    listed,
    number,
    per_second,
    percent,
    plural,
    quoted,
    short,
    size,
)
from stallmark.record.manifest.course import ChosenSize
from stallmark.report.text import UNSURE, Format, clause, indicative, rate, says

# The wording of a ceiling: the load that was searched for, at which the service level holds.

_VERDICTS = {"held": "held", "broke": "broke the service level", "undecided": "too few samples to decide"}
_TRIED = {
    "first": "first",
    "double": "doubled",
    "halve": "gap halved",
    "above": "above, again",
    "ceiling": "ceiling, again",
    "balance": "inconclusive, again",
}
METHOD = (
    "The measured seconds of a level are divided into ten parts. The level holds if the 95 % interval over these "
    "parts is within every limit. If the interval includes a limit, the level is measured for up to three times as "
    "long, and then judged by its value alone."
)


def level_verdict(verdict: str) -> str:
    """Return the verdict on a level in words."""
    return _VERDICTS[verdict]


def tried(reason: str) -> str:
    """Return the reason for trying a level."""
    return _TRIED[reason]


def level(unit: str, value: float) -> str:
    """Return a level in words: "240 users", "1,200 per second", "1.25 times the load"."""
    if unit == "load":
        return f"{_plain(value)} times the load"
    return f"{_plain(value)} user{'s' * (value != 1)}" if unit == "users" else f"{_plain(value)} per second"


def limit(facts: list[Any]) -> str:
    """Return a limit in words: "a mean read time of 10 ms", "p95 of Trade-Orders of 50 ms"."""
    subject, transaction, percentile, limit_ms = facts
    if subject == "reads":
        return f"a mean read time of {_plain(limit_ms)} ms"
    whose = f" of {plural(transaction)}" if transaction else ""
    return f"{percentile}{whose} of {_plain(limit_ms)} ms"


@says(CeilingKind.FOUND)
def _(
    variant: str | None, repeat: int | None, of: str, holds: float, breaks: float, asked: list[float],
    per_s: float | None, primary: str | None, limits: list[list[Any]], missed: list[list[Any]], limit: Finding | None,
) -> str:  # fmt: skip
    beyond = f". At {level(of, breaks)} {_misses(missed)}" if missed else ""
    return (
        f"{_subject(variant, repeat)}arries {_plain(holds)} to {level(of, breaks)}{_rate(per_s, primary, holds)} "
        f"within {_listed(limits)}{_ends(limit)}{beyond}."
    )


@says(CeilingKind.NONE)
def _(variant: str | None, repeat: int | None, of: str, breaks: float, missed: list[list[Any]], **_: Any) -> str:
    if not missed:
        return (
            f"{_subject(variant, repeat)}ould not be judged even at {level(of, breaks)}: too few reads or transactions "
            "were observed. Raise `measure`, or `from`."
        )
    return f"{_subject(variant, repeat)}annot carry even {level(of, breaks)}: {_misses(missed)}."


@says(CeilingKind.RATIO)
def _(
    variants: list[str], of: str, levels: list[float], ratio: float, low: float | None, high: float | None,
    verdict: Verdict,
) -> str:  # fmt: skip
    a, b = variants
    between = f" ({factor(low)} to {factor(high)})" if low is not None and high is not None else ""
    doubt = f"; {UNSURE[verdict]}" if verdict in UNSURE else ""
    return (
        f"The ceiling of {quoted([b])} is {factor(ratio)}{between} that of {quoted([a])}: {level(of, levels[1])} "
        f"against {_plain(levels[0])}{doubt}."
    )


@says(CeilingKind.LIMIT)
def _(variant: str | None, repeat: int | None, of: str, breaks: float, verdict: Finding) -> str:
    where = f" with {quoted([variant])}" if variant else ""
    where += f" in repeat {repeat}" if repeat else ""
    return f"At {level(of, breaks)}{where}: {clause(verdict)}."


@says(CeilingKind.DRIVER)
def _(variant: str | None, of: str, breaks: float, runs: int, repeats: int) -> str:
    part = f" in {runs} of {repeats} runs" if runs < repeats else ""
    where = f"of {quoted([variant])} " if variant else ""
    return (
        f"The ceiling {where}may be the driver’s: at {level(of, breaks)} the driver was the bottleneck{part}. Use more "
        "load machines, or ones with more CPU."
    )


_LIMITS = {
    DeviceKind.LIMITS: "{} is the limit",
    DeviceKind.LATENCY_LIMITS: "{} is the limit",
    DeviceKind.ONE_OF_SEVERAL: "{} is one limit of several",
    DeviceKind.WITH_CPUS: "{} and the CPUs are limits together",
    DeviceKind.CPUS_LIMIT: "the CPUs are the limit",
}
_DEVICES = {JudgedDevice.DATA: "the storage of the data", JudgedDevice.LOG: "the log"}


def limit_of(verdict: Finding | None) -> str | None:
    """Return the limit by the verdict on a device, as a clause, or None if unknown."""
    text = _LIMITS.get(DeviceKind(verdict.kind)) if verdict else None
    device = JudgedDevice(verdict.facts.get("device", JudgedDevice.DATA)) if verdict else JudgedDevice.DATA
    return text.format(_DEVICES[device]) if text else None


def _ends(verdict: Finding | None) -> str:
    """Return the first limit, if known."""
    text = limit_of(verdict)
    return f"; beyond that {text}" if text else ""


def _subject(variant: str | None, repeat: int | None) -> str:
    """Return the owner of the ceiling, up to the c with which all verbs begin."""
    again = f"In repeat {repeat} " if repeat else ""
    name = quoted([variant]) if variant else f"{'the' if again else 'The'} server"
    return f"{again}{name} c"


def _rate(per_s: float | None, primary: str | None, level: float | None = None) -> str:
    """Return the rate in brackets, with the `level` at which it was measured; empty if it is unknown."""
    if per_s is None:
        return ""
    return f" ({_in_unit(per_s, primary)}{f' at {_plain(level)}' if level is not None else ''})"


def _highest_met(facts: Mapping[str, Any]) -> str:
    """Return the mean rate of the highest levels that met the limits; empty if it is unknown."""
    per_s = facts["per_s"]
    return "" if per_s is None else f"; {_in_unit(per_s, facts['primary'])} at the highest level that held"


def _in_unit(per_s: float, primary: str | None) -> str:
    return f"{number(per_s)} {plural(display_name(primary)) + '/s' if primary else 'TPS'}"


def _misses(missed: list[list[Any]]) -> str:
    limits = [miss for miss in missed if miss[0] not in ("backlog", "queries")]
    texts = ["a growing number of arrivals waits" for subject, *_ in missed if subject == "backlog"]
    texts += [f"a growing number of queries of {load} waits" for subject, load, *_ in missed if subject == "queries"]
    return listed(texts + [f"{_listed(limits)} is exceeded"] * bool(limits))


def _listed(limits: list[list[Any]]) -> str:
    return listed([limit(facts) for facts in limits])


def _plain(value: float) -> str:
    """Write a number that was chosen, not measured: 12, not 12.0."""
    return short(value, 4)


# The wording of a mail store's I/Os as mailboxes.
@says(MailIoKind.MAILBOXES)
def _(
    step: str | None, iops: float, apart_iops: float | None, each: float, mailboxes: int, read_ms: float | None,
    measured: int,
) -> str:  # fmt: skip
    where = f"{quoted([step])}: " if step else ""
    scan = f" (and {number(apart_iops)} of the background scan)" if apart_iops else ""
    reads = f"; reads took {number(read_ms)} ms" if read_ms is not None else ""
    measurements = f" (mean of {measured} measurements)" if measured > 1 else ""
    return (
        f"{where}{number(iops)} reads and writes of data files per second{scan} correspond to {count(mailboxes)} "
        f"mailboxes at {each:g} each{reads}{measurements}."
    )


# The wording of the memory curve, and of memory against flash.

Change = list[float | None]
"""Times as much memory, the change of throughput, and its interval of 95 %."""

SENTENCES: Mapping[Kind, str] = {
    # The verbs all begin with a c, which “whose” ends on.
    CeilingKind.AT_LEAST: (
        "{facts:whose}arries at least {facts:holds}{facts:rate} within {limits:limits}: the search ended at its upper "
        "end (`to`)."
    ),
    CeilingKind.UNCONFIRMED: (
        "{facts:whose}annot be given a ceiling: levels contradicted each other until the maximum number of levels was "
        "reached, last near {facts:ends}. Measure longer."
    ),
    CeilingKind.ENDED: "{facts:whose}annot be given a ceiling: the run ended before the search did.",
    CeilingKind.REPEATS: (
        "{facts:whose}arries {mean:number} {of:unit} (95 % interval {low:number} to {high:number}, {runs} runs"
        "{facts:highest_met}) within {limits:limits}."
    ),
    CurveKind.KNOWN: (
        "Between its {sizes} sizes the memory curve is known to within {tolerance:percent}: predicted from the other "
        "sizes alone, {facts:missed}."
    ),
    CurveKind.NOT_KNOWN: (
        "Between its {sizes} sizes the memory curve is not known to within {tolerance:percent}: predicted from the "
        "other sizes alone, {facts:missed}, most at {worst_bytes:size} ({worst[0]:number}/s predicted, "
        "{worst[1]:per_second} measured){spent:not_allowed}."
    ),
    CurveKind.ENOUGH: (
        "{facts:pool}{smallest:smallest} is enough: {more:times} {more:gives}{less:costs}{fewest_runs:indicative}."
    ),
    CurveKind.MAY_BE_ENOUGH: (
        "{facts:pool} may be enough, but {facts:doubt}: {more:times} {more:gives}{less:costs}. {driver_bound:remedy}."
    ),
    CurveKind.STILL_BUYS: (
        "Memory pays up to the largest size measured, {facts:pool}: it {last:gives} than {last:part}"
        "{fewest_runs:indicative}."
    ),
    CurveKind.FELL: (
        "Throughput fell by {change:fall} from {pools_bytes[0]:size} of memory to {pools_bytes[1]:size}, so no size is "
        "judged to be enough: something other than memory changed, or runs vary by that much{fewest_runs:indicative}."
    ),
    FlashKind.BEYOND_MEMORY: (
        "“{variant}”, {flash_bytes:size} of flash with {pool_bytes:size} of memory, gives more throughput than the "
        "largest memory measured without flash, {largest_bytes:size}{fewest_runs:indicative}."
    ),
    FlashKind.NO_GAIN: (
        "“{variant}”, {flash_bytes:size} of flash with {pool_bytes:size} of memory, gives no more throughput than the "
        "same memory without flash{fewest_runs:indicative}."
    ),
    FlashKind.READS_FOR_MEMORY: (
        "Prediction: with {pool_bytes:size} of memory, reads of {read_ms[1]:number} ms instead of {read_ms[0]:number} "
        "would give {facts:predicted} ({per_s[2]:number} to {per_s[3]:number}), as much as {equal_bytes:size} of "
        "memory give on this storage ({equal_range:between})."
    ),
}


@says(FlashKind.FOR_MEMORY)
def _(
    variant: str, pool_bytes: int, flash_bytes: int, per_s: list[float], primary: str | None, fewest_runs: int,
    equal_bytes: float, equal_range: list[float | None], worth: float, costs: list[float] | None,
) -> str:  # fmt: skip
    if costs:
        memory, flash = map(number, costs)
        better = "flash" if costs[1] < costs[0] else "memory"
        buys = f"At the given prices that memory costs {memory} and the flash {flash}, so {better} buys more here"
    else:
        buys = f"So flash buys more here if a GiB of memory costs more than {number(1 / worth)} times a GiB of flash"
    return (
        f"{quoted([variant])}, {size(flash_bytes)} of flash with {size(pool_bytes)} of memory, gives as much "
        f"throughput as {size(equal_bytes)} of memory without flash ({_range_text(*equal_range)}). "
        f"{buys}{indicative(fewest_runs)}."
    )


def size_reason(chosen: ChosenSize | None) -> str:
    """Return the reason for a size, in a cell of a table."""
    if chosen is None:
        return "given"
    if chosen.why == "bend" and chosen.between_bytes:
        a, b = map(size, chosen.between_bytes)
        return f"bend: error of up to {percent(chosen.error or 0.0)} between {a} and {b}"
    if chosen.why == "enough" and chosen.between_bytes:
        a, b = map(size, chosen.between_bytes)
        return f"between {a} (too little) and {b}"
    return {"half": "half of enough", "double": "twice enough"}.get(chosen.why, chosen.why)


CURVE_METHOD = (
    "A point is the mean over the runs of a size (the geometric mean for rates). If runs were repeated, a bar is the "
    "95 % interval: for rates from the variation pooled over all sizes, for reads from at least three runs. The line "
    "is monotone: values that contradict its direction are levelled, and between sizes it is a cubic over the "
    "logarithm of the size. The error of the line is that of predicting each inner size from the other sizes alone."
)

_TWICE = 0.06
"""Tolerance of "twice" and "half" as much memory."""


def curve_summary(sizes: list[tuple[int, float, float | None]]) -> str:
    """Return the chart for readers who cannot see it."""
    texts = [f"{size(pool_bytes)}: {per_second(per_s)}" + (f", {number(reads)} reads" if reads is not None else "")
            for pool_bytes, per_s, reads in sizes]  # fmt: skip
    return f"{'; '.join(texts)}."


def _times(change: Change) -> str:
    times = change[0] or 0.0
    if abs(times / 2 - 1) < _TWICE:
        return "doubling it"
    if abs(times * 2 - 1) < _TWICE:
        return "halving it"
    return f"{number(times)} times as much" if times > 1 else f"{percent(times)} of it"


def _part(change: Change) -> str:
    """Return the smaller of two sizes as a part of the larger one."""
    times = change[0] or 0.0
    return "half that size" if abs(times / 2 - 1) < _TWICE else f"{percent(1 / times)} of that size"


def _doubt(more: Change, driver_bound: bool) -> str:
    if driver_bound:
        return "the driver was the bottleneck with more memory"
    return "these runs cannot show it" if more[2] is None else "the interval is too wide"


def _gives(change: Change) -> str:
    gained = change[1] or 0.0
    if gained > 0 and round(gained * 100):
        return f"gives {percent(gained)} more throughput{_interval(change)}"
    return f"gives no more throughput{_interval(change)}"


def _amount(change: Change) -> str:
    """Return the cost of less memory: "41 % (38 to 44)"."""
    _, cost, low, high = change
    bounds = f" ({_whole(-high)} to {_whole(-low)})" if low is not None and high is not None else ""
    return f"{percent(-(cost or 0.0))}{bounds}"


def _interval(change: Change) -> str:
    _, _, low, high = change
    return f" ({_whole(low)} to {_whole(high)} %)" if low is not None and high is not None else ""


def _whole(share: float) -> str:
    return f"{share * 100:.0f}".replace("-0", "0").replace("-", "−")


def _error_text(error: float, reads_error: float | None) -> str:
    reads = f" and reads by {percent(reads_error)}" if reads_error is not None else ""
    return f"throughput is off by {percent(error)} of the largest value{reads} (root mean square)"


def _range_text(low: float | None, high: float | None) -> str:
    return f"{size(low)} to {size(high)}" if low and high else f"{size(low or 0)} or more"


FORMATS: Mapping[str, Format] = {
    "ends": lambda facts: " and ".join(
        level(facts["of"], end) for end in (facts["holds"], facts["breaks"]) if end is not None
    ),
    "highest_met": _highest_met,
    "holds": lambda facts: level(facts["of"], facts["holds"]),
    "limits": _listed,
    "rate": lambda facts: _rate(facts["per_s"], facts["primary"]),
    "unit": {"users": "users", "rate": "per second", "load": "times the load"}.__getitem__,
    "whose": lambda facts: _subject(facts["variant"], facts.get("repeat")),
    "missed": lambda facts: _error_text(facts["error"], facts["reads_error"]),
    "between": lambda ends: _range_text(*ends),
    "predicted": lambda facts: rate(facts["per_s"][1], facts["primary"]),
    "smallest": lambda smallest: ", the smallest size measured," if smallest else "",
    "times": _times,
    "gives": _gives,
    "costs": lambda less: f"; {_times(less)} costs {_amount(less)}" if less else "",
    "part": _part,
    "fall": lambda change: percent(-change),
    "doubt": lambda facts: _doubt(facts["more"], facts["driver_bound"]),
    "remedy": lambda bound: "Give the driver more CPU, or another machine" if bound else "More repeats may show it",
    "not_allowed": lambda spent: "; the maximum number of sizes was reached (`sizes`)" if spent else "",
}

"""The wording of probes of raw storage: its saturation, and how several compare."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stallmark.analysis.finding import Finding, Kind
from stallmark.format import factor, listed, number, percent
from stallmark.probe.summary import SaturationKind
from stallmark.report.text import Format, clause, says
from stallmark.stats.thresholds import PROBE_SLUMPS
from stallmark.stats.thresholds import SAME as ALIKE

_MOST_STEPS = 3  # steps named in a sentence


SENTENCES: Mapping[Kind, str] = {
    SaturationKind.ONE_STEP: (
        "{pattern}: {facts:rate} at {outstanding} outstanding, {mean_ms:number} ms each{facts:marks}."
    ),
    SaturationKind.NOT_SATURATED: (
        "{pattern} does not saturate up to {outstanding} outstanding: {facts:rate} there, {mean_ms:number} ms each"
        "{facts:marks}."
    ),
    SaturationKind.COLLAPSED_RATE: (
        "Only {iops:number} I/Os per second, down from {best_iops:number} with fewer outstanding."
    ),
    SaturationKind.COLLAPSED_TAIL: (
        "One I/O in a hundred takes {p99_ms:number} ms or more, up from {knee_p99_ms:number} ms at {knee} outstanding."
    ),
    SaturationKind.OF_PROBE: "{probe}: {found:sentence}",
    SaturationKind.NOT_REPEATED: "No probe was repeated: differences of a few percent may be chance.",
    SaturationKind.EMULATED_AND_REAL: (
        "Emulated and real devices are shown together: results of one do not apply to the other."
    ),
    SaturationKind.FEW_IOS: (
        "{probe}: {share:percent} of the steps had too few I/Os for a p99; probe for longer with --seconds."
    ),
    SaturationKind.INCOMPLETE: "{probe} is incomplete: {said:as_reason}.",
    SaturationKind.SMALL_FILE: (
        "The probe’s file has only {file_bytes:size}: an array with that much memory or flash serves the file from "
        "there and barely uses its disks; use a larger file (--size)."
    ),
}


@says(SaturationKind.SATURATED)
def _(
    pattern: str, outstanding: int, mean_ms: float, gain: float, last: int, last_ms: float, **rest: Any
) -> str:  # fmt: skip
    beyond = ""
    if rest["collapse"] is None:
        change = f"{percent(abs(gain)) if gain else 'no'} {'less' if gain < 0 else 'more'}"
        beyond = f"; {last} outstanding give {change}, at {number(last_ms)} ms each"
    return (
        f"{pattern} saturates at {outstanding} outstanding: {_rate(rest)}, {number(mean_ms)} ms each{beyond}"
        f"{_marks(**rest)}."
    )


@says(SaturationKind.OVERALL)
def _(
    saturated: Sequence[Mapping[str, Any]],
    not_saturated: Sequence[str],
    one_step: Sequence[str],
    not_issued: Sequence[str],
    collapsed: Sequence[Mapping[str, Any]],
    unstable: Sequence[str],
) -> str:
    texts = [f"{_verb(group['patterns'], 'saturate')} at {group['depth']} outstanding" for group in saturated]
    if not_saturated:
        rest = "" if saturated else " saturate"
        texts.append(
            f"{listed(not_saturated)} {'does' if len(not_saturated) == 1 else 'do'} not{rest}, as far as measured"
        )
    texts += [f"{_verb(group['patterns'], 'collapse')} at {group['depth']}" for group in collapsed]
    # A pattern with a single depth cannot show a collapse.
    if (saturated or not_saturated) and not collapsed:
        which = "none of these" if one_step or not_issued else "nothing"
        texts.append(f"{which} collapses{': beyond saturation, I/Os only wait longer' if saturated else ''}")
    if unstable:
        texts.append(f"{listed(unstable)} {'is' if len(unstable) == 1 else 'are'} unstable")
    if one_step:
        texts.append(f"{listed(one_step)} {'is' if len(one_step) == 1 else 'are'} known at only one depth")
    slow_machine = "the machine could not issue I/O as fast as the storage answers"
    if not_issued:
        every = len(texts) == 0
        texts.append(slow_machine if every else f"for {listed(not_issued)}, {slow_machine}")
    text = "; ".join(texts)
    return f"{text[0].upper()}{text[1:]}."


# Several probes


@says(SaturationKind.AGAINST_FIRST)
def _(
    pattern: str, outstanding: int, probe: str, first: str, iops: float, first_iops: float, mean_ms: float,
    first_ms: float,
) -> str:  # fmt: skip
    ratio = iops / first_iops
    many = f"{factor(ratio)} as many" if abs(ratio - 1) > ALIKE else "as many"
    return (
        f"{pattern} at {outstanding} outstanding: {many} I/Os per second with {probe} as with {first} ({number(iops)} "
        f"against {number(first_iops)}, {number(mean_ms)} ms against {number(first_ms)})."
    )


@says(SaturationKind.NOT_AT_DEVICE)
def _(probe: str, device: str | None, share: float, steps: list[str], of: int) -> str:
    shown = steps if len(steps) <= _MOST_STEPS else [*steps[: _MOST_STEPS - 1], f"{len(steps) - _MOST_STEPS + 1} more"]
    which = "every step" if len(steps) == of else listed(shown)
    only = "only" if len(steps) == 1 else "at worst only"
    return (
        f"{probe}: the device{f' {device}' if device else ''} counted {only} {percent(share)} of the bytes that were "
        f"read or written ({which}). The rest did not reach the device, as with a cache or a compressing file system, "
        "so this is not the device’s performance."
    )


def _verb(patterns: Sequence[str], verb: str) -> str:
    return f"{listed(patterns)} {verb}{'s' * (len(patterns) == 1)}"


def _rate(rest: Mapping[str, Any]) -> str:
    return f"{number(rest['iops'])} I/Os per second" if "iops" in rest else f"{number(rest['mb_per_s'])} MB/s"


def _marks(
    collapse: int | None, because: Finding | None, unstable: Sequence[int], limited: Sequence[int], **_: Any
) -> str:  # fmt: skip
    text = f"; at {collapse} it collapses: {clause(because)}" if because else ""
    if unstable:
        text += f"; at {_several(unstable)} it is unstable: the rate is below half of its median in "
        text += f"{percent(PROBE_SLUMPS)} of the time or more"
    if limited:
        text += f"; at {_several(limited)} the machine could not keep that many in flight, so these are omitted"
    return text


def _several(depths: Sequence[int]) -> str:
    return listed([str(depth) for depth in depths])


FORMATS: Mapping[str, Format] = {"marks": lambda facts: _marks(**facts), "rate": _rate}


CURVES = (
    "A closed loop for each point: a constant number of I/Os is outstanding. Once the rate no longer grows, further "
    "outstanding I/Os only wait longer."
)
RATE = "I/Os completed within the step, divided by its seconds."
RATE_READING = "Circle: saturation, from which more outstanding I/Os add little. Cross: collapse."
LATENCY = "From issuing an I/O to its end. A percentile is omitted if the sample is too small."


def histogram_method(bins: int) -> str:
    return f"Share of the I/Os of a step in each of {bins} bins per power of ten."


def emulated_probes(emulated: int, probes: int, devices: Iterable[str]) -> str:
    """Return the sentence about probes of emulated arrays."""
    which = "All probes" if emulated == probes else f"{emulated} of {probes} probes"
    return (
        f"{which} measured a device whose service times Stallmark injected ({'; '.join(devices)}). Their results show "
        "how a probe sees such a device, and do not measure a product."
    )


def stronger(outstanding: Sequence[int]) -> str:
    return f"The more opaque a line, the more I/Os were outstanding: {', '.join(map(str, outstanding))}."


def curve_ends(name: str, values: Sequence[tuple[str, int]]) -> str:
    """Return a curve's values with the fewest and the most outstanding I/Os."""
    (first, fewest), (last, most) = values
    return f"{name}: {first} at {fewest} outstanding, {last} at {most}."

"""Where a pattern saturates, whether it collapses beyond, and whether it is steady: from its steps alone.

A step keeps n I/Os outstanding, of which x end per second after r on average: n = x·r (Little). So three things can
happen as n grows: x grows with it; x stays and r grows in proportion, the storage is saturated; x falls, or some I/Os
take far longer than their share, it collapses.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, log2
from statistics import fmean, median

from stallmark.format import listed, number, percent
from stallmark.record.probe import Pattern, ProbeResult, ProbeStep
from stallmark.stats.thresholds import (
    PROBE_COLLAPSE,
    PROBE_GAIN,
    PROBE_SLUMPS,
    PROBE_SUSTAINED,
    PROBE_TAIL,
    PROBE_UNSTABLE,
    PROBE_WINDOW_IOS,
)


@dataclass(frozen=True)
class Saturation:
    """Of one pattern. Outstanding I/Os throughout.

    `knee`: from which on no doubling brings PROBE_GAIN; None where the last step still did, or there is one step only.
    `collapse`: the first that collapsed, with the reason; `unstable`: those with slumps within the step;
    `limited`: those for which the program that issues I/O was too slow, and which are left out of the others.
    """

    pattern: Pattern
    knee: int | None
    best: ProbeStep | None
    collapse: int | None
    because: str | None
    unstable: tuple[int, ...]
    limited: tuple[int, ...]
    sentence: str


def saturations(probe: ProbeResult) -> list[Saturation]:
    """Of every pattern that was measured."""
    return [saturation(pattern, steps) for pattern, steps in probe.curves().items()]


def overall(found: Sequence[Saturation]) -> str:
    """What several patterns have in common, in a sentence; each has its own besides."""
    judged = [one for one in found if one.best]
    parts = [
        f"{_titles(same)} saturate{'s' * (len(same) == 1)} at {depth} outstanding"
        for depth, same in _by(judged, lambda one: one.knee)
        if depth is not None
    ]
    if never := [one for one in judged if one.knee is None]:
        parts.append(f"{_titles(never)} do{'es' * (len(never) == 1)} not, as far as measured")
    collapsed = [one for one in judged if one.collapse is not None]
    parts += [
        f"{_titles(same)} collapse{'s' * (len(same) == 1)} at {depth}"
        for depth, same in _by(collapsed, lambda one: one.collapse)
    ]
    if judged and not collapsed:
        parts.append("nothing collapses: beyond saturation, I/Os only wait longer")
    if shaky := [one for one in judged if one.unstable]:
        parts.append(f"{_titles(shaky)} {'is' if len(shaky) == 1 else 'are'} unstable")
    said = "; ".join(parts) or "The machine could not issue I/O as fast as the storage answers"
    return f"{said[0].upper()}{said[1:]}."


def _by(
    found: Sequence[Saturation], key: Callable[[Saturation], int | None]
) -> list[tuple[int | None, list[Saturation]]]:
    return [(depth, [one for one in found if key(one) == depth]) for depth in dict.fromkeys(map(key, found))]


def _titles(found: Sequence[Saturation]) -> str:
    return listed([one.pattern.title for one in found])


def saturation(pattern: Pattern, steps: Sequence[ProbeStep]) -> Saturation:
    """`steps` of the pattern, fewest outstanding first."""
    limited = tuple(step.outstanding for step in steps if not sustained(step))
    judged = [step for step in steps if step.outstanding not in limited]
    knee = _knee(judged)
    collapse, because = _collapse(judged, knee)
    unstable = tuple(step.outstanding for step in judged if is_unstable(step))
    best = max(judged, key=lambda step: step.iops, default=None)
    found = Saturation(
        pattern, knee.outstanding if knee else None, best, collapse, because, unstable, limited, sentence=""
    )
    return Saturation(**{**vars(found), "sentence": _sentence(found, steps, judged, knee)})


def sustained(step: ProbeStep) -> bool:
    """As many I/Os were under way as were asked for."""
    return step.iops * step.mean_ms / 1000 >= PROBE_SUSTAINED * step.outstanding


def is_unstable(step: ProbeStep) -> bool:
    """I/Os per second slump again and again within the step. Windows of few I/Os are put together, until each has as
    many as it takes."""
    if len(step.windows) < 2:
        return False
    length = step.windows[1][0] - step.windows[0][0]
    together = ceil(PROBE_WINDOW_IOS / (step.iops * length))
    single = [rate for _, rate in step.windows]
    rates = [fmean(single[i : i + together]) for i in range(0, len(single) - together + 1, together)]
    if not rates:
        return False
    slumps = sum(rate < PROBE_UNSTABLE * median(rates) for rate in rates)
    return slumps >= max(2, PROBE_SLUMPS * len(rates))


def _knee(steps: Sequence[ProbeStep]) -> ProbeStep | None:
    """The first step beyond which nothing is gained; the last one has nothing beyond it."""
    for number_, step in enumerate(steps[:-1], 1):
        if all(later.iops < step.iops * _worth(later.outstanding / step.outstanding) for later in steps[number_:]):
            return step
    return None


def _worth(more: float) -> float:
    """The rate, as a multiple, that so many times the outstanding I/Os must bring."""
    return float((1 + PROBE_GAIN) ** log2(more))


def _collapse(steps: Sequence[ProbeStep], knee: ProbeStep | None) -> tuple[int | None, str | None]:
    for position, step in enumerate(steps):
        best = max((s.iops for s in steps[:position]), default=0.0)
        if step.iops < (1 - PROBE_COLLAPSE) * best:
            return step.outstanding, f"{number(step.iops)} I/Os per second, after {number(best)} with fewer"
        if knee and step.outstanding > knee.outstanding:
            tail, usual = step.latency_ms["p99"], knee.latency_ms["p99"]
            share = step.outstanding / knee.outstanding
            if tail and usual and tail / usual > PROBE_TAIL * share:
                return step.outstanding, (
                    f"one I/O in a hundred takes {number(tail)} ms or more, after {number(usual)} ms at "
                    f"{knee.outstanding} outstanding"
                )
    return None, None


def _sentence(
    found: Saturation, steps: Sequence[ProbeStep], judged: Sequence[ProbeStep], knee: ProbeStep | None
) -> str:
    name = found.pattern.title
    first = name[0].upper() + name[1:]
    if not judged:
        return f"{first}: the machine could not issue I/O as fast as the storage answers, whose limits are not known."
    last = judged[-1]
    if len(judged) == 1:
        said = f"{first}: {_rate(last)} at {last.outstanding} outstanding, {number(last.mean_ms)} ms each"
    elif knee is None:
        said = (
            f"{first} does not saturate up to {last.outstanding} outstanding: {_rate(last)} there, "
            f"{number(last.mean_ms)} ms each"
        )
    else:
        said = f"{first} saturates at {knee.outstanding} outstanding: {_rate(knee)}, {number(knee.mean_ms)} ms each"
        if found.collapse is None:
            gain = max(0.0, (found.best or knee).iops / knee.iops - 1)
            said += (
                f"; {last.outstanding} outstanding bring {percent(gain) if gain else 'no'} more and take "
                f"{number(last.mean_ms)} ms each"
            )
    if found.collapse is not None:
        said += f"; at {found.collapse} it collapses: {found.because}"
    if found.unstable:
        said += f"; it is unstable at {_several(found.unstable)}, where its rate slumps again and again"
    if found.limited:
        said += f"; at {_several(found.limited)} the machine could not keep as many under way, which are left out"
    return f"{said}."


def _rate(step: ProbeStep) -> str:
    if step.pattern.random:
        return f"{number(step.iops)} I/Os per second"
    return f"{number(step.mb_per_s)} MB/s"


def _several(depths: Sequence[int]) -> str:
    return listed([str(depth) for depth in depths])

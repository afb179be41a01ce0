"""The wording of probes around runs: changes of raw storage, their reach, and the database's share."""

from collections.abc import Mapping, Sequence
from typing import Any

from stallmark.analysis.finding import Kind
from stallmark.analysis.probe_comparison import Differs, ProbeKind
from stallmark.format import listed, number, percent, signed, size
from stallmark.record.manifest.storage import Precondition
from stallmark.report.text import says, term
from stallmark.stats.thresholds import PROBE_DRIFT


def preconditioned(done: Precondition) -> str:
    """Return the preconditioning before a run as a sentence, and whether writes were steady at its end."""
    rounds_ms = done.rounds_ms
    end = f"writes were {'' if done.steady else 'not '}steady after {len(rounds_ms)} rounds"
    return (
        f"A file of {size(done.size_bytes)} was filled and overwritten at random in rounds of {done.round_s:g} s: "
        f"{end}{'' if done.steady else ', and the run was measured anyway'} ({number(rounds_ms[0])} ms per write in "
        f"the first, {number(rounds_ms[-1])} in the last)."
    )


SENTENCES: Mapping[Kind, str] = {
    ProbeKind.NOT_ISSUED: (
        "{pattern}: the machine could not issue I/O as fast as the storage answers, so the storage’s limit is unknown."
    ),
    ProbeKind.FITS_DRAM: (
        "The probe’s file of {file_bytes:size} fits into the array’s DRAM ({dram_bytes:size}), which may have "
        "answered instead of its disks and flash; use a larger file (`probe: {{size: …}}`)."
    ),
    ProbeKind.NO_COMMON_STEP: "The probes before and after have no step in common: they cannot show a drift.",
    ProbeKind.DRIFT_HIDDEN: "It is unknown whether raw storage changed: {why:clause}.",
    ProbeKind.NO_RANDOM_READS: (
        "The database had {reads_per_s:number} reads per second at {read_ms:number} ms; the probe has no random reads "
        "to compare them with."
    ),
    ProbeKind.BEYOND_PROBE: (
        "The database had {reads_per_s:number} reads per second at {read_ms:number} ms, {outstanding:number} "
        "outstanding; raw storage was measured with at most {most_outstanding} outstanding, where it gave "
        "{raw_reads_per_s:number} reads per second."
    ),
    ProbeKind.BELOW_PROBE: (
        "The database had {reads_per_s:number} reads per second at {read_ms:number} ms, {outstanding:number} "
        "outstanding; raw storage was measured with at least {fewest_outstanding} outstanding, where it gave "
        "{raw_reads_per_s:number} reads per second."
    ),
    ProbeKind.ACHIEVED: (
        "The database had {reads_per_s:number} reads per second at {read_ms:number} ms; raw storage gives "
        "{raw_reads_per_s:number} with the same number outstanding ({outstanding:number}, {pattern}), {raw_ms:number} "
        "ms each: the database achieved {share:percent} of that rate."
    ),
    ProbeKind.RAW_MAY_BE_SLOWER: "Raw storage may be slower than that: {why:clause}.",
}


# Before and after


@says(ProbeKind.MIXED_DEVICES)
def _(emulated_before: bool) -> str:
    before, after = (
        ("an emulated device", "the real one") if emulated_before else ("the real device", "an emulated one")
    )
    return f"The first probe was of {before}, the second of {after}: they cannot show a drift."


@says(ProbeKind.DIFFERENT_PROBES)
def _(what: Differs, before: str | int, after: str | int) -> str:
    sizes = (size(int(before)), size(int(after))) if what == Differs.FILE_SIZE else (before, after)
    return f"The probes before and after differ in {term(what)} ({sizes[0]}, {sizes[1]}): they cannot show a drift."


@says(ProbeKind.SAME)
def _(steps: int, most: Mapping[str, Any], change: float) -> str:
    which = "the one step of both probes" if steps == 1 else f"all {steps} steps of both probes"
    return (
        f"Raw storage is unchanged: within {percent(PROBE_DRIFT)} in {which}; {_step(most)} changed most, by "
        f"{signed(change)}."
    )


@says(ProbeKind.DRIFTED)
def _(steps: Sequence[Mapping[str, Any]]) -> str:
    went = [
        f"{_step(step)} went from {number(step['before_iops'])} to {number(step['after_iops'])} I/Os per second "
        f"({number(step['before_ms'])} to {number(step['after_ms'])} ms)"
        for step in steps
    ]
    return (
        f"Raw storage has changed: {listed(went)}, more than the {percent(PROBE_DRIFT)} allowed. Measurements in "
        "between are not comparable."
    )


@says(ProbeKind.DRIFT_UNKNOWN)
def _(steps: Sequence[Mapping[str, Any]]) -> str:
    doubts = [
        f"the variation of {_step(step)} is unknown"
        if step["low"] is None or step["high"] is None
        else f"{_step(step)} changed by between {signed(step['low'] - 1)} and {signed(step['high'] - 1)}"
        for step in steps
    ]
    return (
        f"It is unknown whether raw storage changed by more than {percent(PROBE_DRIFT)}: {listed(doubts)}; longer "
        "probes may show it."
    )


# Beside a database


@says(ProbeKind.OTHER_DEVICE)
def _(reads_per_s: float, read_ms: float, emulated: bool) -> str:
    own, other = ("an emulated device", "the real one") if emulated else ("the real device", "an emulated one")
    return (
        f"The database had {number(reads_per_s)} reads per second at {number(read_ms)} ms on {own}, but the "
        f"probe is of {other}: the two are not compared."
    )


def _step(step: Mapping[str, Any]) -> str:
    return f"{step['pattern']} at {step['outstanding']} outstanding"

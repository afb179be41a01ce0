"""What the reader must not conclude because of the storage itself: what was active, and what became of it meanwhile."""

from collections.abc import Iterator, Sequence

from stallmark.analysis.compare.storage import drifts, mixed_up, probes_of
from stallmark.analysis.points import group, labels, points
from stallmark.analysis.probe.drift import DRIFTED
from stallmark.analysis.probe.precondition import preconditioned
from stallmark.analysis.probe.reach import small
from stallmark.analysis.summary import RunSummary
from stallmark.format import listed
from stallmark.record.devices import dram_of, flash_of, is_data_emulated


def array_cautions(runs: Sequence[RunSummary]) -> Iterator[str]:
    yield from _active(runs)
    yield from _unsized(runs)
    yield from _warming(runs)
    yield from _small_probes(runs)
    for run in runs:
        if ended := run.manifest.ended:
            yield f"The experiment ended before “{ended.before}”: {' '.join(ended.because.split())}."
        if said := mixed_up(run):
            yield f"{said[0].upper()}{said[1:]}: the two are not set beside each other."
        conditioned = run.manifest.precondition
        if conditioned and not conditioned.steady:
            yield f"{run.title}: {preconditioned(conditioned)}"
    for same in group(runs, lambda run: run.manifest.variant.name):
        for what, found in drifts(same):
            if found.verdict == DRIFTED:
                yield f"{what[0].upper()}{what[1:]}: {found.sentence[0].lower()}{found.sentence[1:]}"


def _unsized(runs: Sequence[RunSummary]) -> Iterator[str]:
    """Of arrays that are made another between variants, which is done because of their flash."""
    arrays = [run.manifest for run in runs if not is_data_emulated(run.manifest)]
    if any(one.hook for one in arrays) and not any(dram_of(one) or flash_of(one) for one in arrays):
        yield (
            "How large the array’s DRAM and flash are nobody said, so that what was active cannot be set beside them: "
            "perhaps DRAM alone was measured. Write it into the scenario (array: {dram: 8GiB, flash_cache: 800GB})."
        )


def _warming(runs: Sequence[RunSummary]) -> Iterator[str]:
    everything = points([step for run in runs for step in run.steps])
    warming = [point for point in everything if any(step.flash_warming for step in point.steps)]
    if warming:
        which = "what was measured" if len(everything) == 1 else listed(labels(warming, everything))
        yield (
            f"Flash was still warming up in {which}: it answered ever more of the reads. Later it would have given "
            "more, and in which order a cache and a tier come in the end these figures do not tell."
        )


def _small_probes(runs: Sequence[RunSummary]) -> Iterator[str]:
    """Where the array's memory is known, each comparison of probes says what it hides."""
    unknown = [run for run in runs if dram_of(run.manifest) is None]
    sizes = [one.file_bytes for run in unknown for one in probes_of(run).values() if not one.emulated]
    if sizes and (said := small(min(sizes), "a larger one (probe: {size: …})")):
        yield f"Probes around runs: {said[0].lower()}{said[1:]}"


def _active(runs: Sequence[RunSummary]) -> Iterator[str]:
    everything = points([step for run in runs for step in run.steps])
    warned = [(text, point) for point in everything if point.first.active for text in point.first.active.warnings]
    for same in group(warned, lambda one: one[0]):
        of = [point for _, point in same]
        where = "" if len(of) == len(everything) else f"{listed(labels(of, everything))}: "
        text = same[0][0]
        yield f"{where}{text[0].lower() if where else text[0]}{text[1:]}"

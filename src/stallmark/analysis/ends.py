"""Experiments that ended before all their variants were run."""

from collections.abc import Iterable, Iterator

from stallmark.analysis.finding import Finding, Kind, caution
from stallmark.record.manifest import Manifest


class EndKind(Kind):
    EXPERIMENT = "experiment_ended_early"


def ends(made: Iterable[Manifest]) -> Iterator[Finding]:
    """Say before which variant an experiment ended, and why: None where it was killed, or still prepares it."""
    for manifest in made:
        if ended := manifest.ended:
            said = " ".join(ended.because.split()) if ended.because else None
            yield caution(EndKind.EXPERIMENT, before=ended.before, said=said)

"""The statements that a report may make on a load in two variants."""

from collections.abc import Mapping, Sequence

from stallmark.analysis.compare.claims import THROUGHPUT, Claims, comparable, decide
from stallmark.analysis.compare.metrics import ratio_of
from stallmark.analysis.compare.summary import Claim, ReasonKind
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.loads.points import LoadPoint
from stallmark.analysis.points import Point, points
from stallmark.analysis.run import RunSummary


class LoadClaims:
    """The claims on the throughput of a load in one step of any two variants. A load of users is checked by its own
    view; another one by its run, whose reads per transaction differ with the share of each load."""

    def __init__(self, runs: Sequence[RunSummary], views: Mapping[str, ExperimentSummary]):
        self._whole = Claims(runs), _by_step(runs)
        self._views = {name: (Claims(view.runs, view.comparison), _by_step(view.runs)) for name, view in views.items()}

    def claim(self, a: LoadPoint, b: LoadPoint) -> Claim:
        """Return the claim on B against A, the same load and step."""
        view = self._views.get(a.first.load)
        claims, found = view or self._whole
        steps = [found.get((point.first.variant, point.first.step)) for point in (a, b)]
        if steps[0] and steps[1]:
            claim = claims.claim(steps[0], steps[1])
            if view or any(one.kind is not ReasonKind.READS_DIFFER for one in claim.reasons):
                return claim
        rates_a, rates_b = ([run.rate for run in point.runs] for point in (a, b))
        return decide(THROUGHPUT, ratio_of("throughput", "", "higher", rates_a, rates_b, paired=False))

    def comparable_points(self, found: Sequence[LoadPoint]) -> list[LoadPoint]:
        """Return the first point and those that may be compared with it and with each other."""
        return comparable(found, self.claim)


def _by_step(runs: Sequence[RunSummary]) -> dict[tuple[str, str], Point]:
    steps = [step for run in runs for step in run.steps]
    return {(point.first.variant, point.first.step): point for point in points(steps)}

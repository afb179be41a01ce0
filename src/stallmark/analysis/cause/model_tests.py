"""A test of one side's model: its prediction for the other side's read time, against what that side really did."""

from collections.abc import Sequence
from statistics import fmean

from stallmark.analysis.bottleneck.prediction import predict
from stallmark.analysis.cause.summary import ModelTest
from stallmark.analysis.step_summary import StepSummary
from stallmark.stats.thresholds import READS_SAME


def tested(model: Sequence[StepSummary], other: Sequence[StepSummary]) -> list[ModelTest]:
    """Return one test, or none where the two differ in more than reads: users, reads per transaction, or what is not
    known.

    Predictions are means over the runs of `model`, and so are the ends of their range.
    """
    demands = [step.cause.demands for step in model if step.cause and step.cause.demands]
    theirs = [step.cause.demands for step in other if step.cause and step.cause.demands]
    if not demands or not theirs or len(demands) < len(model) or len(theirs) < len(other) or not _alike(model, other):
        return []
    if {one.read_source for one in (*demands, *theirs)} != {demands[0].read_source}:
        return []
    read_ms = fmean(one.read_ms for one in theirs)
    predictions = [predict(one, read_ms) for one in demands]
    return [
        ModelTest(
            model[0].variant,
            other[0].variant,
            read_ms,
            fmean(one.tps for one in predictions),
            fmean(one.low for one in predictions),
            fmean(one.high for one in predictions),
            fmean(one.tps for one in theirs),
            len(theirs),
        )
    ]


def _alike(model: Sequence[StepSummary], other: Sequence[StepSummary]) -> bool:
    if {step.users for step in (*model, *other)} != {model[0].users}:
        return False
    reads = [[step.storage.reads_per_transaction for step in side] for side in (model, other)]
    if any(one is None for side in reads for one in side):
        return False
    a, b = (fmean(one for one in side if one is not None) for side in reads)
    return a > 0 and b > 0 and abs(b - a) <= READS_SAME * max(a, b)

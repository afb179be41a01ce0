"""The server that was lost while a step was measured: started again, replaced, or not reached."""

import math
from collections.abc import Iterator

import numpy as np

from stallmark.analysis.finding import Finding, invalid
from stallmark.analysis.read.driver_tables import Load
from stallmark.analysis.read.interval import Interval
from stallmark.analysis.read.transactions import Errors
from stallmark.analysis.validity.kinds import ValidityKind
from stallmark.stats.thresholds import LOST_WITHIN_S


def server_lost(
    load: Load, errors: Errors, starts: np.ndarray, begin_s: float, interval: Interval
) -> Iterator[Finding]:
    """Yield the signs that the server was lost in an interval, which then tells nothing of its limits. `starts` are the
    times between which the server had another start.

    One that was lost in the warm-up, which began at `begin_s`, is lost unless a transaction ended before the interval.
    """
    for before, after in starts:
        if before < interval.end and after > interval.begin:
            yield invalid(ValidityKind.SERVER_STARTED, before_s=float(before), after_s=float(after))
    ended = load.of_users("committed") + load.of_users("rolled_back")
    first = math.floor(begin_s)
    answered = np.flatnonzero(ended[first : interval.begin])
    since = first + (int(answered[-1]) if len(answered) else 0)
    users = int(load.user_sum("running")[since : interval.end].max(initial=0))
    lost = errors.lost_connections()[since : interval.end]
    together = int(np.convolve(lost, np.ones(LOST_WITHIN_S)).max(initial=0)) if len(lost) else 0
    if users and together >= users:
        yield invalid(ValidityKind.CONNECTIONS_LOST, users=users, lost=together, within_s=LOST_WITHIN_S)

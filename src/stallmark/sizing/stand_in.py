"""The rates of the stand-in's loads: what each costs by itself, what all did together, and the rates that come nearest
to what the profile's server did."""

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
from scipy.optimize import nnls

from stallmark.analysis.loads.step import LoadStep
from stallmark.analysis.loads.summary import LoadsSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.sizing.manifest import Demand, Matched

# The quantities that a profile tells, as the loads of a stand-in did them: by themselves, and together.

Quantity = Literal["reads", "read_bytes", "writes", "log_bytes", "cpu_cores"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)


def fitted(with_queries: bool) -> tuple[Quantity, ...]:
    """Return the quantities that the rates of loads are fitted to. Bytes read go with reads, unless there are loads of
    queries: their reads are large."""
    return tuple(name for name in QUANTITIES if with_queries or name != "read_bytes")


def wanted_of(demand: Demand) -> dict[str, float | None]:
    """Return the quantities per second that the profile's busiest window had. Log among the data is not told apart."""
    busiest = demand.windows[0]
    found: dict[str, float | None] = {name: busiest.mean(name) for name in QUANTITIES if name != "cpu_cores"}
    if not demand.log_known:
        found |= {"log_bytes": None}
    return found | {"cpu_cores": demand.cpu_cores}


def costs_of(calibrated: LoadsSummary, cores: int | None) -> dict[str, dict[str, float | None]]:
    """Return what one transaction that a user started, or one query, cost in the step in which its load ran alone, by
    load. `cores`: of the server, None where it does not say: its CPU is then not known either.

    A query counts where it ends. One that began before the step counts whole, and one that goes on after it does not:
    of few long queries the cost is rough.
    """
    alone = [
        (name, step, _started(step))
        for name, view in calibrated.loads.items()
        for run in view.runs
        for step in run.steps
    ]
    steps = {step.step: step for run in calibrated.whole.runs for step in run.steps}
    alone += [(one.load, steps[one.step], one.ended) for one in _of_queries(calibrated)]
    return {
        name: {of: None if value is None else value * step.interval.measured_s / count for of, value in costs.items()}
        for name, step, count in alone
        if count and (costs := _per_second(step, cores))
    }


def queries_ended(calibrated: LoadsSummary) -> dict[str, int]:
    """Return how many queries ended in the step in which their load ran alone, by load."""
    return {one.load: one.ended for one in _of_queries(calibrated)}


def queries_waited(tried: LoadsSummary) -> dict[str, float]:
    """Return the share of the queries of each load that waited for a stream in a trial, which has one step."""
    late = {one.load: one.late for point in tried.points for one in point.runs}
    return {load: one.waited / one.due for load, one in late.items() if one}


def _of_queries(summary: LoadsSummary) -> list[LoadStep]:
    return [one for point in summary.points for one in point.runs if one.kind == "streams" and one.alone]


def reached_by(tried: LoadsSummary, cores: int | None) -> dict[str, float | None]:
    """Return what all loads together did per second in a trial."""
    return _per_second(tried.whole.runs[-1].steps[-1], cores)


def _per_second(step: StepSummary, cores: int | None) -> dict[str, float | None]:
    data, log, state = step.storage.data, step.storage.wal, step.server.state
    share = state.cpu_process_share if state else None
    return {
        "reads": data.reads / data.seconds if data else None,
        "read_bytes": data.read_bytes / data.seconds if data else None,
        "writes": data.writes / data.seconds if data else None,
        "log_bytes": log.write_bytes / log.seconds if log else None,
        "cpu_cores": share * cores if share is not None and cores else None,
    }


def _started(step: StepSummary) -> int:
    """Return the transactions that users started: others follow of them."""
    users = [one for one in step.transactions if one.source == "users"]
    return sum(one.committed + one.rolled_back + one.failed for one in users)


def off(wanted: Mapping[str, float | None], reached: Mapping[str, float | None]) -> float:
    """Return the largest share by which a quantity that is wanted is off, of those that were measured."""
    pairs = [(want, reached[name]) for name, want in wanted.items()]
    return max((abs(did / want - 1) for want, did in pairs if want and did is not None), default=0.0)


def matched(wanted: Mapping[str, float | None], reached: Mapping[str, float | None]) -> tuple[Matched, ...]:
    """Return every quantity with what was wanted and reached of it, for the manifest."""
    return tuple(Matched(name=name, wanted=wanted[name], reached=reached[name]) for name in QUANTITIES)


# The rates of several loads that come nearest to what is wanted of all of them together.

Costs = Mapping[str, Mapping[str, float | None]]
"""The costs of one transaction of a load, by load and quantity; None: not known."""


def fitted_rates(wanted: Mapping[str, float | None], costs: Costs) -> dict[str, float]:
    """Return the rate of each load, per second: none is negative, and the squares of the relative errors are least.

    A quantity counts where it is wanted, above zero, and known of every load. Raise ValueError where none does.
    """
    counted = [
        name
        for name, value in wanted.items()
        if value
        and all(one.get(name) is not None for one in costs.values())
        and any(one[name] for one in costs.values())
    ]
    if not counted:
        raise ValueError("nothing that is wanted is known of the loads")
    relative = np.array([[(one[name] or 0.0) / (wanted[name] or 1.0) for one in costs.values()] for name in counted])
    # A load is scaled to one that alone does all of its largest part: rates differ by powers of ten.
    scale = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
    found, _ = nnls(relative / scale, np.ones(len(counted)))
    return {load: float(rate) for load, rate in zip(costs, found / scale, strict=True)}


def corrected(
    costs: Costs, rates: Mapping[str, float], reached: Mapping[str, float | None]
) -> dict[str, dict[str, float | None]]:
    """Return the costs as they turned out with the loads together: each quantity by as much as it was off."""
    factors = {}
    for name, value in reached.items():
        foreseen = sum(rates[load] * (one.get(name) or 0.0) for load, one in costs.items())
        factors[name] = value / foreseen if value and foreseen else 1.0
    return {
        load: {name: None if cost is None else cost * factors.get(name, 1.0) for name, cost in one.items()}
        for load, one in costs.items()
    }

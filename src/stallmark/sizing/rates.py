"""The rates at which loads together do what a profile’s server did, and the costs that they are fitted from."""

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
import scipy  # submodules are imported on first use

from stallmark.analysis.load_steps import LoadStep
from stallmark.analysis.loads import LoadsSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.sizing.manifest import Demand, Matched

# The quantities that a profile tells, as the loads of a stand-in did them: by themselves, and together.

Quantity = Literal["reads", "read_bytes", "writes", "log_bytes", "cpu_cores"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)


def quantities_to_fit(with_queries: bool) -> tuple[Quantity, ...]:
    """Return the quantities that the rates are fitted to.

    Read bytes follow reads, unless there are loads of queries, whose reads are large.
    """
    return tuple(name for name in QUANTITIES if with_queries or name != "read_bytes")


def target_rates(demand: Demand) -> dict[str, float | None]:
    """Return the quantities per second of the profile's busiest window. Log writes among the data are not separate."""
    busiest = demand.windows[0]
    quantities: dict[str, float | None] = {name: busiest.mean(name) for name in QUANTITIES if name != "cpu_cores"}
    if not demand.log_known:
        quantities |= {"log_bytes": None}
    return quantities | {"cpu_cores": demand.cpu_cores}


def costs_of(calibrated: LoadsSummary, cores: int | None) -> dict[str, dict[str, float | None]]:
    """Return the cost of one transaction that a user started, or of one query, from the step with its load alone, by
    load.

    `cores` are the server's, or None if unknown, and then its CPU cost is unknown too. A query counts when it ends. One
    that began before the step counts completely, one that continues after the step does not: with few long queries the
    cost is rough.
    """
    alone = [
        (name, step, _started_transactions(step))
        for name, view in calibrated.loads.items()
        for run in view.runs
        for step in run.steps
    ]
    steps = {step.step: step for run in calibrated.whole.runs for step in run.steps}
    alone += [(query_step.load, steps[query_step.step], query_step.ended) for query_step in _query_steps(calibrated)]
    return {
        name: {
            quantity: None if value is None else value * step.interval.measured_s / count
            for quantity, value in costs.items()
        }
        for name, step, count in alone
        if count and (costs := _per_second(step, cores))
    }


def ended_queries(calibrated: LoadsSummary) -> dict[str, int]:
    """Return the number of queries that ended in the step with their load alone, by load."""
    return {step.load: step.ended for step in _query_steps(calibrated)}


def shares_of_waiting_queries(tried: LoadsSummary) -> dict[str, float]:
    """Return the share of each load's queries that waited for a stream in a trial, which has one step."""
    late = {step.load: step.late for point in tried.points for step in point.runs}
    return {load: lateness.waited / lateness.due for load, lateness in late.items() if lateness}


def _query_steps(summary: LoadsSummary) -> list[LoadStep]:
    return [step for point in summary.points for step in point.runs if step.kind == "streams" and step.alone]


def measured_rates(tried: LoadsSummary, cores: int | None) -> dict[str, float | None]:
    """Return the combined rates of all loads in a trial, per second."""
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


def _started_transactions(step: StepSummary) -> int:
    """Return the number of transactions that users started: others follow from these."""
    users = [transaction for transaction in step.transactions if transaction.source == "users"]
    return sum(transaction.committed + transaction.rolled_back + transaction.failed for transaction in users)


def largest_error(wanted: Mapping[str, float | None], reached: Mapping[str, float | None]) -> float:
    """Return the largest relative error of a target quantity, among those measured."""
    pairs = [(want, reached[name]) for name, want in wanted.items()]
    return max((abs(did / want - 1) for want, did in pairs if want and did is not None), default=0.0)


def matched_quantities(wanted: Mapping[str, float | None], reached: Mapping[str, float | None]) -> tuple[Matched, ...]:
    """Return every quantity with its target and its measured value, for the manifest."""
    return tuple(Matched(name=name, wanted=wanted[name], reached=reached[name]) for name in QUANTITIES)


# The rates of several loads that come nearest to what is wanted of all of them together.

Costs = Mapping[str, Mapping[str, float | None]]
"""The costs of one transaction of a load, by load and quantity; None if unknown."""


def fitted_rates(wanted: Mapping[str, float | None], costs: Costs) -> dict[str, float]:
    """Return the rate of each load, per second: non-negative, with the least sum of squared relative errors.

    A quantity counts if its target is above zero and its cost is known for every load. Raise ValueError if none does.
    """
    counted = [
        name
        for name, value in wanted.items()
        if value
        and all(load_costs.get(name) is not None for load_costs in costs.values())
        and any(load_costs[name] for load_costs in costs.values())
    ]
    if not counted:
        raise ValueError("nothing that is wanted is known of the loads")
    relative = np.array(
        [[(load_costs[name] or 0.0) / (wanted[name] or 1.0) for load_costs in costs.values()] for name in counted]
    )
    # A load is scaled to one that alone does all of its largest part: rates differ by powers of ten.
    # Not less than `tiny`, or a load without a counted cost would be divided by zero.
    scale = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
    scaled, _ = scipy.optimize.nnls(relative / scale, np.ones(len(counted)))
    return {load: float(rate) for load, rate in zip(costs, scaled / scale, strict=True)}


def corrected_costs(
    costs: Costs, rates: Mapping[str, float], reached: Mapping[str, float | None]
) -> dict[str, dict[str, float | None]]:
    """Return the costs as measured with the loads together: each quantity is scaled by its error."""
    factors = {}
    for name, value in reached.items():
        foreseen = sum(rates[load] * (load_costs.get(name) or 0.0) for load, load_costs in costs.items())
        factors[name] = value / foreseen if value and foreseen else 1.0
    return {
        load: {name: None if cost is None else cost * factors.get(name, 1.0) for name, cost in load_costs.items()}
        for load, load_costs in costs.items()
    }

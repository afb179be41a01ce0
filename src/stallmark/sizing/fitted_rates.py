"""The rates of several loads that come nearest to what is wanted of all of them together."""

from collections.abc import Mapping

import numpy as np
from scipy.optimize import nnls

Costs = Mapping[str, Mapping[str, float | None]]
"""The costs of one transaction of a load, by load and quantity; None: not known."""


def fitted_rates(wanted: Mapping[str, float | None], costs: Costs) -> dict[str, float]:
    """Return the rate of each load, per second: none is negative, and the squares of the relative errors are least.

    A quantity counts where it is wanted, above zero, and known of every load. Raise ValueError if none does.
    """
    counted = [
        name
        for name, value in wanted.items()
        if value
        and all(cost.get(name) is not None for cost in costs.values())
        and any(cost[name] for cost in costs.values())
    ]
    if not counted:
        raise ValueError("nothing that is wanted is known of the loads")
    relative = np.array([[(cost[name] or 0.0) / (wanted[name] or 1.0) for cost in costs.values()] for name in counted])
    # A load is scaled to one that alone does all of its largest part: rates differ by powers of ten.
    scale = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
    solution, _ = nnls(relative / scale, np.ones(len(counted)))
    return {load: float(rate) for load, rate in zip(costs, solution / scale, strict=True)}


def corrected(
    costs: Costs, rates: Mapping[str, float], reached: Mapping[str, float | None]
) -> dict[str, dict[str, float | None]]:
    """Return the costs as measured with the loads together: each quantity multiplied by its measured over its predicted
    value.
    """
    factors = {}
    for name, value in reached.items():
        foreseen = sum(rates[load] * (by_quantity.get(name) or 0.0) for load, by_quantity in costs.items())
        factors[name] = value / foreseen if value and foreseen else 1.0
    return {
        load: {name: None if cost is None else cost * factors.get(name, 1.0) for name, cost in by_quantity.items()}
        for load, by_quantity in costs.items()
    }

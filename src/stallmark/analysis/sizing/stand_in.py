"""The quantities that a profile tells, as the loads of a stand-in did them: by themselves, and together."""

from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from stallmark.analysis.loads.summary import summarise_loads
from stallmark.analysis.step_summary import StepSummary
from stallmark.record.reader import Record
from stallmark.record.sizing.manifest import Demand, Matched

FITTED = ("reads", "writes", "log_bytes", "cpu_cores")
"""The quantities that the rates of loads are fitted to. Bytes read go with reads."""
Quantity = Literal["reads", "read_bytes", "writes", "log_bytes", "cpu_cores"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)


def wanted_of(demand: Demand) -> dict[str, float | None]:
    """Return the quantities per second that the profile's busiest window had. Log among the data is not told apart."""
    busiest = demand.windows[0]
    found: dict[str, float | None] = {name: busiest.mean(name) for name in QUANTITIES if name != "cpu_cores"}
    if not demand.log_known:
        found |= {"log_bytes": None}
    return found | {"cpu_cores": demand.cpu_cores}


def costs_of(records: Sequence[Record], cores: int | None) -> dict[str, dict[str, float | None]]:
    """Return what one transaction that a user started cost in the step in which its load ran alone, by load. `cores`:
    of the server, None where it does not say: its CPU is then not known either."""
    found = {}
    for name, view in summarise_loads(records).loads.items():
        for run in view.runs:
            for step in run.steps:
                started = _started_per_s(step)
                costs = _per_second(step, cores)
                if started:
                    found[name] = {of: None if value is None else value / started for of, value in costs.items()}
    return found


def reached_by(records: Sequence[Record], cores: int | None) -> dict[str, float | None]:
    """Return what all loads together did per second in the last step of these runs."""
    return _per_second(summarise_loads(records).whole.runs[-1].steps[-1], cores)


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


def _started_per_s(step: StepSummary) -> float:
    """Return the transactions per second that users started: others follow of them."""
    users = [one for one in step.transactions if one.source == "users"]
    return sum(one.committed + one.rolled_back + one.failed for one in users) / step.interval.measured_s


def off(wanted: Mapping[str, float | None], reached: Mapping[str, float | None]) -> float:
    """Return the largest share by which a fitted quantity is off, of those that are wanted and were measured."""
    pairs = [(wanted[name], reached[name]) for name in FITTED]
    return max((abs(did / want - 1) for want, did in pairs if want and did is not None), default=0.0)


def matched(wanted: Mapping[str, float | None], reached: Mapping[str, float | None]) -> tuple[Matched, ...]:
    """Return every quantity with what was wanted and reached of it, for the manifest."""
    return tuple(Matched(name=name, wanted=wanted[name], reached=reached[name]) for name in QUANTITIES)

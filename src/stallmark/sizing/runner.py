"""The runner of a sizing: a profile's I/O is replayed, then loads of ours stand in for its database.

Each load runs alone first, which measures the cost of its transactions. The costs determine the rates at which all
loads together do what the profile's server did. A trial measures the result and corrects the rates; then the highest
multiple of the rates is searched for.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import stallmark
from stallmark.analysis.loads import summarise_loads
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, StallmarkError, as_reason
from stallmark.experiment import LoadMachines
from stallmark.experiment.preflight import refuse_what_cannot_be
from stallmark.experiment.progress import Phase, Show
from stallmark.experiment.runner import Runner
from stallmark.experiment.storage_work import folder_for_files
from stallmark.format import exact, short
from stallmark.quantities import PoolSize
from stallmark.record import devices
from stallmark.record.files import exclusive_folder
from stallmark.record.manifest.course import now
from stallmark.record.reader import Record, find_records
from stallmark.record.writer import experiment_folder
from stallmark.scenarios.load import objective
from stallmark.scenarios.model import LoadsScenario
from stallmark.sizing.manifest import Demand, Sizing, StandIn, write_sizing
from stallmark.sizing.rates import (
    corrected_costs,
    costs_of,
    ended_queries,
    fitted_rates,
    largest_error,
    matched_quantities,
    measured_rates,
    quantities_to_fit,
    shares_of_waiting_queries,
    target_rates,
)
from stallmark.sizing.replay import replay
from stallmark.sizing.scenario import SizingScenario
from stallmark.stats.ceiling_search import Next
from stallmark.stats.thresholds import MATCHED_WITHIN
from stallmark.stopping import StopSignal, later

TRIALS = 3


class SizingRunner:
    """A sizing: the measurement of one candidate for the demand of a profile."""

    def __init__(
        self,
        scenario: SizingScenario,
        demand: Demand,
        engine: Engine,
        out: Path,
        show: Show,
        machines: LoadMachines | None = None,
    ):
        """Choose a folder in `out` for the manifest and, in subfolders, the experiments of the stand-in."""
        # Validated with the scenario.
        assert scenario.slo and scenario.search
        self._scenario = scenario
        self._demand = demand
        self._engine = engine
        self._show = show
        self._machines = machines
        choice = scenario.replay
        self._data = folder_for_files("replay.folder", choice.folder, engine)
        self._log = folder_for_files("replay.log_folder", choice.log_folder, engine, "wal")
        self.folder = experiment_folder(out, scenario.name)
        self._made = Sizing(
            stallmark=stallmark.__version__,
            started=now(),
            candidate=scenario.candidate.to_record(),
            demand=demand,
            service_level=objective(scenario.slo),
            machine=devices.machine_facts(),
            engine=engine.dialect,
        )

    def run(self) -> str | None:
        """Execute the sizing; return the reason that it is incomplete, or None if it is complete. Its manifest is
        always closed.

        Raise StallmarkError before any I/O if the server cannot have the stand-in.
        """
        machines = self._machines.count if self._machines else 1
        refuse_what_cannot_be(
            self._scenario, self._engine, self.folder.parent, machines, goes_by="the I/O of its loads"
        )
        # Stands in the manifest if an error comes that nothing below expects.
        reason: str | None = "Stallmark ended unexpectedly"
        with exclusive_folder(
            self.folder, taken=f"Another Stallmark writes into {self.folder}: wait for it or stop it."
        ):
            try:
                self._note()
                self._replay()
                reason = self._stand_in()
            except (StopSignal, StallmarkError, CallFailed, OSError) as error:
                reason = as_reason(error)
                raise
            finally:
                with later():
                    status = "incomplete" if reason else "complete"
                    self._note(status=status, because=reason, ended=now())
        return reason

    @property
    def has_results(self) -> bool:
        """Return True if the replay has begun to measure."""
        return self._made.replay is not None

    def _note(self, **fields: object) -> None:
        self._made = self._made.changed(**fields)
        write_sizing(self.folder, self._made)

    def _replay(self) -> None:
        scenario, choice, engine = self._scenario, self._scenario.replay, self._engine
        assert scenario.search
        [variant] = scenario.variants
        engine.devices.use(scenario.emulated_arrays_of(variant, choice.size))
        engine.devices.engage()
        try:
            with self._show.bar("Replaying the profile’s I/O", None, Phase.PROBING):
                replay(
                    self._demand.windows,
                    scenario.search.spec(),
                    self._made.service_level,
                    data=self._data,
                    log=self._log,
                    data_bytes=choice.size,
                    log_bytes=choice.log_size,
                    played=min(1.0, choice.play / self._demand.windows[0].seconds),
                    devices=engine.devices.array,
                    progress=self._show_level,
                    keep=lambda result: self._note(replay=result),
                )
        finally:
            engine.devices.relax()

    def _show_level(self, level: Next, seconds: float) -> None:
        note = f"{exact(level.level)} times the profile, {seconds:.0f} s"
        if self._made.replay:
            last = self._made.replay.levels[-1]
            note += f" ({exact(last.level)} {last.verdict})"
        self._show.advance(0, note)

    def _stand_in(self) -> str | None:
        """Find the rates of the loads and their highest multiple; return the reason if the search is incomplete."""
        scenario, pool, cores = self._scenario, self._pool(), self._engine.cores()
        calibrated, reason = self._run_part(scenario.calibration(pool))
        if reason:
            return reason
        self._note(devices=calibrated[0].manifest.devices)
        calibration = summarise_loads(calibrated)
        wanted, costs = target_rates(self._demand), costs_of(calibration, cores)
        if absent := [name for name in scenario.loads if name not in costs]:
            work = "query" if absent[0] in scenario.queries else "transaction"
            return f"{absent[0]} did not end a {work} by itself, so that its rate cannot be found"
        to_fit: dict[str, float | None] = {name: wanted[name] for name in quantities_to_fit(bool(scenario.queries))}
        best: tuple[float, StandIn] | None = None
        for number in range(1, TRIALS + 1):
            try:
                rates = scenario.runnable_rates(fitted_rates(to_fit, costs))
            except ValueError:
                return "the loads do nothing of what the profile’s server did, so that their rates cannot be found"
            self._show.say(_rates_in_words(rates))
            tried, reason = self._run_part(scenario.trial(rates, pool))
            if reason:
                return reason
            together = summarise_loads(tried)
            reached = measured_rates(together, cores)
            deviation = largest_error(to_fit, reached)
            # A correction can overshoot: the best trial counts, not the last.
            if best is None or deviation < best[0]:
                did = {"queries": ended_queries(calibration), "waited": shares_of_waiting_queries(together)}
                record = self._stand_in_record(
                    pool, calibrated, tried, rates=rates, matched=matched_quantities(wanted, reached), **did
                )
                best = deviation, record
                self._note(stand_in=best[1])
            if deviation <= MATCHED_WITHIN or number == TRIALS:
                break
            costs = corrected_costs(costs, rates, reached)
        assert best
        searched, reason = self._run_part(scenario.ceiling(best[1].rates, pool))
        self._note(stand_in=best[1].changed(ceiling=searched[0].folder.parent.name if searched else None))
        return reason

    def _stand_in_record(
        self, pool: PoolSize | None, calibrated: Sequence[Record], tried: Sequence[Record], **fields: Any
    ) -> StandIn:
        made = tried[-1].manifest
        data_bytes, pool_bytes = made.database.bytes_before or 0, made.memory.reached_bytes
        share = min(1.0, pool_bytes / data_bytes) if pool_bytes and data_bytes else None
        return StandIn(
            pool_share=pool.share if pool and pool.share else share,
            data_bytes=data_bytes,
            pool_bytes=pool_bytes,
            calibration=calibrated[0].folder.parent.name,
            trial=tried[-1].folder.parent.name,
            **fields,
        )

    def _pool(self) -> PoolSize | None:
        """Return the buffer pool of the stand-in: the candidate's share of the profile's data, else the scenario's.

        None: the scenario leaves the server's memory unchanged.
        """
        own = self._scenario.pool_of(self._scenario.variants[0])
        pool_bytes = self._made.candidate.memory_bytes or self._demand.pool_bytes
        if own is None or not pool_bytes or not self._demand.database_bytes:
            return own
        return PoolSize(share=float(f"{min(1.0, pool_bytes / self._demand.database_bytes):.4g}"))

    def _run_part(self, scenario: LoadsScenario) -> tuple[list[Record], str | None]:
        """Make the runs of a part of the stand-in; return its records, and the reason if they are incomplete."""
        self._show.say(scenario.title)
        runner = Runner(scenario, self._engine, self.folder, self._show, self._machines)
        ended = runner.run()
        reason = ended.incomplete_because
        if reason is None and not ended.conditions_hold:
            reason = "a consistency condition does not hold after a run of the stand-in"
        return (find_records([runner.folder]) if any(runner.folder.glob("*/manifest.json")) else []), reason


def _rates_in_words(rates: dict[str, float]) -> str:
    listed = ", ".join(f"{name} {short(rate)}" for name, rate in rates.items() if rate)
    return f"Rates at which the loads should do what the profile’s server did, per second: {listed}"

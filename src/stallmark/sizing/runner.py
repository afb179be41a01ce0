"""The runner of a sizing: a profile's I/O is replayed, then loads of ours stand in for its database.

The loads run by themselves first, which tells what their transactions cost. From that come the rates at which they do
together what the profile's server did. A trial shows what they reach, and mends the rates; then the highest multiple of
them is searched for.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import stallmark
from stallmark.analysis.loads.summary import summarise_loads
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, StallmarkError, as_reason
from stallmark.experiment.companions import LoadMachines
from stallmark.experiment.preflight import refuse_what_cannot_be
from stallmark.experiment.progress import Phase, Show
from stallmark.experiment.runner import Runner
from stallmark.format import exact, short
from stallmark.quantities import PoolSize
from stallmark.record import devices
from stallmark.record.files import exclusive_folder
from stallmark.record.manifest.course import now
from stallmark.record.reader import Record, find_records
from stallmark.record.writer import experiment_folder
from stallmark.scenarios.model import LoadsScenario
from stallmark.scenarios.search import objective
from stallmark.sizing.manifest import Demand, Sizing, StandIn, write_sizing
from stallmark.sizing.replay.search import replay
from stallmark.sizing.scenario import SizingScenario
from stallmark.sizing.stand_in import (
    corrected,
    costs_of,
    fitted,
    fitted_rates,
    matched,
    off,
    queries_ended,
    queries_waited,
    reached_by,
    wanted_of,
)
from stallmark.stats.ceiling_search import Next
from stallmark.stats.thresholds import MATCHED_WITHIN
from stallmark.stopping import StopSignal, later
from stallmark.storage.emulator import PROBE_FOLDER

TRIALS = 3


class SizingRunner:
    """A sizing of the `engine` and its storage for the `demand` of a profile. `folder` holds its manifest and, in
    folders of their own, the experiments of the stand-in."""

    def __init__(
        self,
        scenario: SizingScenario,
        demand: Demand,
        engine: Engine,
        out: Path,
        show: Show,
        machines: LoadMachines | None = None,
    ):
        assert scenario.slo and scenario.search
        self._scenario = scenario
        self._demand = demand
        self._engine = engine
        self._show = show
        self._machines = machines
        self._data, self._log = _places(scenario, engine)
        self.folder = experiment_folder(out, scenario.name)
        self._made = Sizing(
            stallmark=stallmark.__version__,
            started=now(),
            candidate=scenario.candidate.described(),
            demand=demand,
            service_level=objective(scenario.slo),
            machine=devices.machine_facts(),
            engine=engine.dialect,
        )

    def run(self) -> str | None:
        """Execute the sizing; return why it is incomplete, None when it is whole. Its manifest is always closed.

        Raise StallmarkError before anything is played where the server could not have the stand-in.
        """
        machines = self._machines.count if self._machines else 1
        refuse_what_cannot_be(
            self._scenario, self._engine, self.folder.parent, machines, goes_by="the I/O of its loads"
        )
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
    def measured(self) -> bool:
        """Tell whether anything was measured."""
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
                    keep=lambda found: self._note(replay=found),
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
        """Find the rates of the loads, and the highest multiple of them; return why that is incomplete."""
        scenario, pool, cores = self._scenario, self._pool(), self._engine.cores()
        calibrated, why = self._experiment(scenario.calibration(pool))
        if why:
            return why
        self._note(devices=calibrated[0].manifest.devices)
        alone = summarise_loads(calibrated)
        wanted, costs = wanted_of(self._demand), costs_of(alone, cores)
        if absent := [name for name in scenario.loads if name not in costs]:
            what = "query" if absent[0] in scenario.queries else "transaction"
            return f"{absent[0]} did not end a {what} by itself, so that its rate cannot be found"
        to_fit: dict[str, float | None] = {name: wanted[name] for name in fitted(bool(scenario.queries))}
        best: tuple[float, StandIn] | None = None
        for number in range(1, TRIALS + 1):
            try:
                rates = scenario.possible(fitted_rates(to_fit, costs))
            except ValueError:
                return "the loads do nothing of what the profile’s server did, so that their rates cannot be found"
            self._show.say(_rates_in_words(rates))
            tried, why = self._experiment(scenario.trial(rates, pool))
            if why:
                return why
            together = summarise_loads(tried)
            reached = reached_by(together, cores)
            away = off(to_fit, reached)
            if best is None or away < best[0]:
                did = {"queries": queries_ended(alone), "waited": queries_waited(together)}
                described = self._described(
                    pool, calibrated, tried, rates=rates, matched=matched(wanted, reached), **did
                )
                best = away, described
                self._note(stand_in=best[1])
            if away <= MATCHED_WITHIN or number == TRIALS:
                break
            costs = corrected(costs, rates, reached)
        assert best
        searched, why = self._experiment(scenario.ceiling(best[1].rates, pool))
        self._note(stand_in=best[1].changed(ceiling=searched[0].folder.parent.name if searched else None))
        return why

    def _described(
        self, pool: PoolSize | None, calibrated: Sequence[Record], tried: Sequence[Record], **found: Any
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
            **found,
        )

    def _pool(self) -> PoolSize | None:
        """Return the buffer pool of the stand-in: the candidate's share of the profile's data, else the scenario's.

        None: the scenario leaves the server's memory as it is."""
        own = self._scenario.pool_of(self._scenario.variants[0])
        pool_bytes = self._made.candidate.memory_bytes or self._demand.pool_bytes
        if own is None or not pool_bytes or not self._demand.database_bytes:
            return own
        return PoolSize(share=float(f"{min(1.0, pool_bytes / self._demand.database_bytes):.4g}"))

    def _experiment(self, scenario: LoadsScenario) -> tuple[list[Record], str | None]:
        """Make the runs of a part of the stand-in; return its records, and why they are incomplete."""
        self._show.say(scenario.title)
        runner = Runner(scenario, self._engine, self.folder, self._show, self._machines)
        ended = runner.run()
        why = ended.incomplete_because
        if why is None and not ended.conditions_hold:
            why = "a consistency condition does not hold after a run of the stand-in"
        return (find_records([runner.folder]) if any(runner.folder.glob("*/manifest.json")) else []), why


def _places(scenario: SizingScenario, engine: Engine) -> list[Path]:
    """Return the folders of the replay's files, of data and of a log. Raise StallmarkError where they are neither known
    nor named."""
    there, choice = engine.directories(), scenario.replay
    found = []
    for role, named, key in (("data", choice.folder, "folder"), ("wal", choice.log_folder, "log_folder")):
        if named and not Path(named).is_dir():
            raise StallmarkError(f"replay.{key}: there is no folder {named}: name one on the storage that is meant.")
        if not named and role not in there:
            raise StallmarkError(
                f"Nobody can tell from here where the files of this server lie: name a folder on the same storage that "
                f"this machine can write to (--set replay.{key}=…)."
            )
        found.append(Path(named) if named else there[role] / PROBE_FOLDER)
    return found


def _rates_in_words(rates: dict[str, float]) -> str:
    said = ", ".join(f"{name} {short(rate)}" for name, rate in rates.items() if rate)
    return f"Rates at which the loads should do what the profile’s server did, per second: {said}"

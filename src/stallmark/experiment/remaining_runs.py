"""The runs that are still to be made: chosen as a curve continues, and after an early end those that are left."""

import json
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

import stallmark
from stallmark.analysis.experiment import SUMMARISED
from stallmark.analysis.run import summarise_run
from stallmark.driver.load import MASTER_PORT
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.record.files import sweep
from stallmark.record.manifest import FILE, Manifest, write_manifest
from stallmark.record.manifest.course import ChosenSize
from stallmark.record.reader import INTERRUPTED, Record, find_records, recorded_seconds
from stallmark.redact import HIDDEN
from stallmark.scenarios.model import AnyScenario, Variant, WorkloadChoice, model_for
from stallmark.scenarios.run_order import PlannedRun
from stallmark.stats.curve_search import CurveSpec, Values, next_size
from stallmark.transactions import find_workload

# The runs of an experiment in their order. Those of a curve of memory are chosen as it goes, from what was seen.
#
# The choice depends on the whole runs alone, so an experiment that was killed goes on as it would have. The record of a
# run says why its size was chosen; and that no further one was needed, where there might have been one.


@dataclass(frozen=True)
class Turn:
    """A run that comes next."""

    number: int
    """The number of the run, from 1."""
    of: int
    """The maximum number of runs."""
    planned: PlannedRun[Variant]
    chosen: ChosenSize | None = None
    """The size of the buffer pool, if it was just chosen for this run."""


def order_of(scenario: AnyScenario, made: Sequence[Manifest]) -> list[PlannedRun[Variant]]:
    """Return the runs of an experiment. On a memory curve `made` has the sizes chosen so far, and the maximum number of
    runs counts until all are chosen."""
    if not scenario.curve:
        return scenario.run_order()
    chosen = _chosen(made)
    return scenario.run_order(
        [choice.bytes for choice in chosen.values()], ended=any(choice.last for choice in chosen.values())
    )


def _chosen(made: Sequence[Manifest]) -> dict[int, ChosenSize]:
    """Return the sizes that runs were made with for the first time, by number, in order."""
    known = {manifest.sequence or 1: manifest.memory.chosen for manifest in made if manifest.memory.chosen}
    return dict(sorted(known.items()))


class RemainingRuns:
    """The missing runs of an experiment: iterate, and `add` each run that was made."""

    def __init__(self, scenario: AnyScenario, asked: CurveSpec | None, done: Mapping[int, Record]):
        self._scenario = scenario
        self._asked = asked
        self._done = set(done)
        self._records = dict(done)  # those added later only for a curve
        self._values: dict[int, Values] = {}

    def __iter__(self) -> Iterator[Turn]:
        number = 1
        while number <= len(order := self._order()):
            if number in self._done:
                number += 1
                continue
            planned, chosen = order[number - 1], None
            # On a curve, the next size depends on the runs so far.
            if self._asked and planned.variant.buffer_pool is None:
                if (choice := next_size(self._asked, self._measured_values())) is None:
                    self._end()
                    continue
                planned = replace(planned, variant=self._scenario.with_size(choice.size))
                chosen = ChosenSize(
                    bytes=choice.size, why=choice.reason.value, between_bytes=choice.between, error=choice.error
                )
            yield Turn(number, len(order), planned, chosen)
            # A run that was not added is incomplete, and ends the experiment.
            if number not in self._done:
                return
            number += 1

    def add(self, number: int, folder: Path) -> None:
        """Add a run that is whole, by the folder of its record."""
        self._done.add(number)
        if self._asked:
            self._records[number] = Record(folder)

    def left(self) -> list[int]:
        """Return the numbers of the runs that are left, at most."""
        return [number for number in range(1, len(self._order()) + 1) if number not in self._done]

    @property
    def _manifests(self) -> list[Manifest]:
        return [record.manifest for record in self._records.values()]

    def _order(self) -> list[PlannedRun[Variant]]:
        return order_of(self._scenario, self._manifests)

    def _measured_values(self) -> dict[int, Values]:
        """Return the measured values of complete runs by size; each run is read once."""
        chosen = _chosen(self._manifests)
        self._values |= {n: _values(self._records[n]) for n in chosen.keys() - self._values.keys()}
        return {choice.bytes: self._values[number] for number, choice in chosen.items()}

    def _end(self) -> None:
        """Note with the last size that no further one is needed."""
        number, last = list(_chosen(self._manifests).items())[-1]
        record = self._records[number]
        memory = record.manifest.memory.changed(chosen=last.changed(last=True))
        write_manifest(record.folder, record.manifest.changed(memory=memory))
        self._records[number] = Record(record.folder)


def _values(record: Record) -> Values:
    """Return the values of a run for its size; unknown if the run is invalid."""
    steps = summarise_run(record, "seen").steps
    if not steps or steps[0].validity.invalid:
        return Values(None, None)
    return Values(steps[0].storage.reads_per_transaction, steps[0].result_tps)


# An experiment that ended early, read from its records: which runs are whole, and what is left to run.


@dataclass(frozen=True)
class EarlierExperiment:
    """An experiment begun earlier. `records` are its whole runs, by their number from 1."""

    folder: Path
    scenario: AnyScenario
    last: Manifest
    records: dict[int, Record]

    @classmethod
    def read(cls, folder: Path) -> "EarlierExperiment":
        """Read an experiment's folder; raise StallmarkError if no run is missing, or the records are not sufficient."""
        records = find_records(with_records(folder) or [folder])
        last = records[-1].manifest
        if len({record.manifest.experiment for record in records}) > 1:
            raise StallmarkError(f"{folder} holds runs of several experiments: name the folder of one.")
        if HIDDEN in json.dumps(last.scenario.facts()):
            raise StallmarkError(
                f"The records in {folder} hide a secret of its SQL, so that the rest would not be the same load: run "
                "the experiment again, with the secret in a parameter from a query."
            )
        if not _database_model(last):
            raise StallmarkError(
                f"{folder} holds runs without a database, which are not continued: make them again, or show them with "
                "`stallmark report`."
            )
        scenario = scenario_of(folder, last)
        refuse_run(folder)
        whole = {
            record.manifest.sequence: record
            for record in records
            if record.folder.parent == folder
            and record.incomplete_because is None
            and record.manifest.sequence is not None
        }
        if len(whole) == len(order_of(scenario, [record.manifest for record in whole.values()])):
            raise StallmarkError(f"{folder} is complete: all its runs were made.")
        return cls(folder, scenario, last, whole)

    def refuse_another_server(self, engine: Engine) -> None:
        """Refuse a server, data, or a Stallmark, of another version than the runs that are there were made with."""
        here, recorded = engine.identity(), self.last.server
        if (here.product, here.version_text) != (recorded.product, recorded.version):
            raise StallmarkError(
                f"{self.folder} was begun on {recorded.product} {recorded.version}, and this is {here.product} "
                f"{here.version_text}: runs on both would not compare. Name the server it was begun on."
            )
        versions = {part.name: part.version for part in find_workload(self.scenario.contents.name).parts}
        for made in [load.workload for load in self.last.loads if load.workload] or [self.last.workload]:
            ours = versions.get(made.name)
            if made.version is not None and ours is not None and made.version != ours:
                raise StallmarkError(
                    f"{self.folder} was begun on data version {made.version} of the {made.name}, and this Stallmark "
                    f"has version {ours}: run the experiment again."
                )
        if self.last.stallmark != stallmark.__version__:
            raise StallmarkError(
                f"{self.folder} was begun with Stallmark {self.last.stallmark}, and this is {stallmark.__version__}: "
                "continue with that one, or run the experiment again."
            )

    def refuse_another_place(self, engine: Engine) -> None:
        """Refuse data that would be elsewhere on this machine than those of the runs that are there."""
        elsewhere = {variant.name for variant in self.scenario.variants if variant.place}
        made = [self.last, *(record.manifest for record in self.records.values())]
        folders = next((manifest.devices.folders for manifest in made if manifest.variant.name not in elsewhere), {})
        here = {name: str(folder) for name, folder in engine.directories().items()}
        if folders and here and here != folders:
            raise StallmarkError(
                f"{self.folder} was begun on data in {folders.get('data')} and a log in {folders.get('wal')}; now they "
                f"would be in {here.get('data')} and {here.get('wal')}: name the first with --data-dir and --wal-dir."
            )

    def gap_s(self) -> float:
        """Return the seconds since the last complete run ended, or since the experiment began."""
        ended = [
            datetime.fromisoformat(record.manifest.started) + timedelta(seconds=recorded_seconds(record))
            for record in self.records.values()
        ]
        since = max(ended, default=datetime.fromisoformat(self.last.started))
        return max(0.0, (datetime.now(UTC) - since).total_seconds())

    def make_room(self, number: int) -> None:
        """Set an incomplete run of this number aside, and take back that the experiment had ended."""
        for record in [Record(path.parent) for path in self.folder.glob(f"*/{FILE}")]:
            made = record.manifest
            if made.sequence == number:
                sweep(record.folder)
                kept = self.folder / INTERRUPTED
                kept.mkdir(exist_ok=True)
                earlier = sum(1 for _ in kept.glob(f"{record.folder.name}-*"))
                shutil.move(record.folder, kept / f"{record.folder.name}-{earlier + 1}")
            elif made.ended:
                write_manifest(record.folder, made.changed(ended=None))


def with_records(folder: Path) -> list[Path]:
    """Return the experiment's folder, and that of its incomplete runs, as far as they hold records."""
    return [place for place in (folder, folder / INTERRUPTED) if any(place.glob(f"*/{FILE}"))]


def command(folder: Path, choice: WorkloadChoice, made: Sequence[Manifest]) -> str:
    """Return the command that makes the missing runs of an experiment, from the manifests of existing runs.

    The command places data and load as before. It has no URL: a URL may contain a password, so records do not have it.
    """
    words = ["--resume", str(folder), *_placing(choice, made[-1])]
    for machines in [manifest.expected_machines for manifest in reversed(made) if manifest.expected_machines][:1]:
        words += ["--expect-workers", str(machines.count)]
        words += ["--master-bind-host", machines.host] if machines.host != "*" else []
        words += ["--master-bind-port", str(machines.port)] if machines.port != MASTER_PORT else []
    return f"stallmark run {shlex.join(words)}"


def _placing(choice: WorkloadChoice, made: Manifest) -> list[str]:
    """Return the options that name the server, or the folders of the embedded one where they are not the usual."""
    folders = {name: Path(folder) for name, folder in made.devices.built_in.items()}
    if "data" not in folders:
        cold = ["--drop-caches"] if made.cache_start == "cold" else []
        shared = ["--shared"] if made.server.shared else []
        return ["--server", "URL", *cold, *shared]
    from stallmark.experiment.target import Target  # imports all of a server, which listing runs does not need

    return [
        *(["--data-dir", str(folders["data"])] if folders["data"] != Target().folder(choice).resolve() else []),
        *(["--wal-dir", str(folders["wal"])] if "wal" in folders else []),
    ]


def refuse_run(folder: Path) -> None:
    """Refuse the folder of a single run, of which the others are not known."""
    if (folder / FILE).exists():
        raise StallmarkError(f"{folder} is a run of an experiment: name the folder above it.")


def _database_model(manifest: Manifest) -> type[AnyScenario] | None:
    """Return the model of a run's scenario, or None without a database."""
    model = model_for(manifest.scenario.facts())
    # A command may record what is not in a scenario file.
    return model if manifest.kind in SUMMARISED and issubclass(model, AnyScenario) else None


def scenario_of(folder: Path, manifest: Manifest) -> AnyScenario:
    """Return the scenario of an experiment from the manifest of one of its runs. Raise StallmarkError for runs without
    a database."""
    if not (model := _database_model(manifest)):
        raise StallmarkError(f"{folder} holds runs without a database: show them with `stallmark report`.")
    try:
        return model.model_validate(manifest.scenario.facts())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise StallmarkError(
            f"The scenario in {folder} cannot be run any more ({'.'.join(map(str, first['loc']))}: {first['msg']})."
        ) from None

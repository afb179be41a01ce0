"""An experiment that ended early, read from its records: which runs are whole, and what is left to run."""

import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import ValidationError

import stallmark
from stallmark.driver.machines import MASTER_PORT
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.experiment.course import order_of
from stallmark.experiment.target import Target
from stallmark.record.files import sweep
from stallmark.record.manifest import FILE, Manifest, write_manifest
from stallmark.record.reader import Record, find_records, recorded_seconds
from stallmark.scenarios.model import AnyScenario, ProbeScenario, WorkloadChoice, model_for
from stallmark.transactions import find_workload

INTERRUPTED = "interrupted"
"""The folder in an experiment's own that keeps its incomplete runs, out of sight of reports."""


@dataclass(frozen=True)
class EarlierExperiment:
    """An experiment begun earlier. `records` are its whole runs, by their number from 1."""

    folder: Path
    scenario: AnyScenario
    last: Manifest
    records: dict[int, Record]

    @classmethod
    def read(cls, folder: Path) -> "EarlierExperiment":
        """Read an experiment's folder; raise StallmarkError where there is nothing left to run, or nothing to go by."""
        records = find_records(with_records(folder) or [folder])
        last = records[-1].manifest
        if len({record.manifest.experiment for record in records}) > 1:
            raise StallmarkError(f"{folder} holds runs of several experiments: name the folder of one.")
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
            raise StallmarkError(f"{folder} is complete: every run of it was made.")
        return cls(folder, scenario, last, whole)

    def refuse_another_server(self, engine: Engine) -> None:
        """Refuse a server, data, or a Stallmark, of another version than the runs that are there were made with."""
        here, there = engine.identity(), self.last.server
        if (here.product, here.version_text) != (there.product, there.version):
            raise StallmarkError(
                f"{self.folder} was begun on {there.product} {there.version}, and this is {here.product} "
                f"{here.version_text}: runs on both would not compare. Name the server it was begun on."
            )
        versions = {one.name: one.version for one in find_workload(self.scenario.contents.name).parts}
        for made in [load.workload for load in self.last.loads if load.workload] or [self.last.workload]:
            ours = versions.get(made.name)
            if made.version is not None and ours is not None and made.version != ours:
                raise StallmarkError(
                    f"{self.folder} was begun on data version {made.version} of the {made.name}, and this Stallmark "
                    f"has version {ours}: run the experiment anew."
                )
        if self.last.stallmark != stallmark.__version__:
            raise StallmarkError(
                f"{self.folder} was begun with Stallmark {self.last.stallmark}, and this is {stallmark.__version__}: "
                "go on with that one, or run the experiment anew."
            )

    def refuse_another_place(self, engine: Engine) -> None:
        """Refuse data that would lie elsewhere on this machine than those of the runs that are there."""
        elsewhere = {variant.name for variant in self.scenario.variants if variant.place}
        made = [self.last, *(record.manifest for record in self.records.values())]
        there = next((one.devices.folders for one in made if one.variant.name not in elsewhere), {})
        here = {name: str(folder) for name, folder in engine.directories().items()}
        if there and here and here != there:
            raise StallmarkError(
                f"{self.folder} was begun on data in {there.get('data')} and a log in {there.get('wal')}; now they "
                f"would lie in {here.get('data')} and {here.get('wal')}: name it with --data-dir and --wal-dir."
            )

    def gap_s(self) -> float:
        """Return the seconds since the last whole run ended; since the experiment began where there is none."""
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
    """Return the command that makes the runs an experiment of that workload still lacks, from the manifests of those it
    has.

    It places data and load as they were. A server's URL may hold a password, so no record has it.
    """
    words = ["--resume", str(folder), *_placing(choice, made[-1])]
    for machines in [one.expected_machines for one in reversed(made) if one.expected_machines][:1]:
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
    return [
        *(["--data-dir", str(folders["data"])] if folders["data"] != Target().folder(choice).resolve() else []),
        *(["--wal-dir", str(folders["wal"])] if "wal" in folders else []),
    ]


def refuse_run(folder: Path) -> None:
    """Refuse the folder of a single run, of which the others are not known."""
    if (folder / FILE).exists():
        raise StallmarkError(f"{folder} is a run of an experiment: name the folder above it.")


def scenario_of(folder: Path, manifest: Manifest) -> AnyScenario:
    """Return the scenario of an experiment from the manifest of one of its runs. Raise StallmarkError for a probe."""
    said = manifest.scenario.facts()
    model = model_for(said)
    if manifest.kind == "probe" or model is ProbeScenario:
        raise StallmarkError(f"{folder} holds a probe of storage, which is short: run it anew.")
    try:
        return model.model_validate(said)  # type: ignore[return-value]
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise StallmarkError(
            f"The scenario in {folder} cannot be run any more ({'.'.join(map(str, first['loc']))}: {first['msg']})."
        ) from None

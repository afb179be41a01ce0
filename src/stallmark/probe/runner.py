"""The runner of probes: each is measured step by step into a record of its own, which grows as it goes."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import stallmark
from stallmark import format
from stallmark.errors import StallmarkError, as_reason
from stallmark.experiment.manifest import EndNote
from stallmark.experiment.progress import Show
from stallmark.probe.record import AskedStep, ProbeManifest, ProbePlan, append_step, begin_record
from stallmark.probe.scenario import ProbeScenario, ProbeVariant
from stallmark.processes import SHARED_MEMORY, temporary_name
from stallmark.record.devices import machine_facts
from stallmark.record.files import refuse_unwritable
from stallmark.record.manifest.course import Scenario, Variant
from stallmark.record.manifest.storage import Asked, ProbeResult, ProbeStep
from stallmark.record.writer import experiment_folder, folder_of
from stallmark.storage.emulator.arrays import EmulatedArrays
from stallmark.storage.probe import ProbedArrays, Progress, measure, now, refuse_memory, result
from stallmark.storage.probe_file import ProbeFile, make_probe_file
from stallmark.storage.programs import find_tool


@dataclass(frozen=True)
class ProbePlace:
    """The place of a probe: its experiment, its number in it, its scenario and its variant."""

    experiment: str
    sequence: int
    scenario: Scenario
    variant: Variant


def record_probe(
    folder: Path,
    place: ProbePlace,
    file: ProbeFile,
    steps: tuple[Asked, ...],
    seconds: float,
    started: str,
    devices: ProbedArrays | None = None,
    progress: Progress = lambda number, step: None,
) -> ProbeResult:
    """Measure the steps into a new record and return the result. However the probe ends, the record is closed."""
    empty = result(file, (), started, devices)
    asked = tuple(AskedStep(pattern=step.pattern.name, outstanding=step.outstanding) for step in steps)
    manifest = ProbeManifest(
        stallmark=stallmark.__version__,
        started=started,
        experiment=place.experiment,
        sequence=place.sequence,
        scenario=place.scenario,
        variant=place.variant,
        probe=empty,
        probe_plan=ProbePlan(seconds=seconds, steps=asked),
        machine=machine_facts(),
    )
    writer = begin_record(folder, manifest)

    def keep(number: int, step: ProbeStep) -> None:
        append_step(writer, step)
        progress(number, step)

    reason: str | None = "Stallmark ended unexpectedly"
    try:
        measured = measure(file, steps, seconds, devices, keep)
        reason = None
    except BaseException as error:
        reason = as_reason(error) or reason
        raise
    finally:
        writer.close(reason)
    return replace(empty, steps=measured)


# The runner of a scenario: every variant is probed.

DEVICE = "probe"


class RawRunner:
    """The probes of one scenario. `home` takes the files of emulated arrays and what is compiled for them; `folder`
    holds the records."""

    def __init__(self, scenario: ProbeScenario, home: Path, out: Path, show: Show):
        self._scenario = scenario
        self._home = home
        self._show = show
        self.folder = experiment_folder(out, scenario.name)
        self._experiment = self.folder.name
        self._note = EndNote()
        self._last: Path | None = None

    def run(self) -> None:
        """Probe every variant. Raise StallmarkError for what cannot be measured; records made until then are whole."""
        self._refuse_impossible()
        try:
            for sequence, variant in enumerate(self._scenario.variants, 1):
                self._note.preparing(self._last, variant.name)
                self._probe(sequence, variant)
        except BaseException as error:
            self._note.record_failure(error)
            raise
        finally:
            self._note.free()

    def _refuse_impossible(self) -> None:
        refuse_unwritable(self.folder.parent, "name another folder for the records with --out")
        for variant in self._scenario.variants:
            find_tool(emulated=variant.emulated_array is not None)
            if variant.emulated_array is not None:
                variant.emulated_array.resolve(self._scenario.probe.size_bytes)
            elif variant.folder and not Path(variant.folder).is_dir():
                raise StallmarkError(f"{variant.name}: {variant.folder} does not exist: name a folder on that storage.")
            elif variant.folder:
                refuse_memory(Path(variant.folder))

    def _probe(self, sequence: int, variant: ProbeVariant) -> None:
        asked, count = self._scenario.probe, len(self._scenario.variants)
        title = f"[{sequence}/{count}] {variant.name}"
        where = Path(variant.folder) if variant.folder else self._home / "probe"
        with shown_file(self._show, title, where, asked.size_bytes) as file, self._devices(variant, where) as devices:
            steps = asked.steps()
            self._note.opened()
            self._last = folder_of(self.folder, sequence, variant.name)
            with self._show.bar(f"{title}: probing", asked.seconds * len(steps)):
                record_probe(
                    self._last,
                    ProbePlace(
                        self._experiment,
                        sequence,
                        Scenario(**self._scenario.model_dump(mode="json")),
                        Variant(**variant.model_dump(mode="json")),
                    ),
                    file,
                    steps,
                    asked.seconds,
                    now(),
                    devices,
                    step_callback(self._show, asked.seconds),
                )

    @contextmanager
    def _devices(self, variant: ProbeVariant, where: Path) -> Iterator[EmulatedArrays | None]:
        if variant.emulated_array is None:
            yield None
            return
        model = variant.emulated_array.resolve(self._scenario.probe.size_bytes)
        state = SHARED_MEMORY / f"{temporary_name('probe')}array"
        with EmulatedArrays.create(state, {DEVICE: where}, {DEVICE: model}, build_dir=self._home / "build") as devices:
            yield devices


def step_callback(show: Show, seconds: float) -> Progress:
    """Return a callback for `measure` that moves the bar on after each step of `seconds` seconds."""

    def progress(done: int, step: ProbeStep) -> None:
        note = f"{step.pattern.title}, {step.outstanding} outstanding: {format.number(step.iops)} I/Os per second"
        show.advance(done * seconds, note)

    return progress


@contextmanager
def shown_file(show: Show, title: str, folder: Path, size_bytes: int) -> Iterator[ProbeFile]:
    """Make a file for a probe, showing a bar while it is written; remove it at the end."""
    with ExitStack() as kept:
        with show.bar(f"{title}: writing a file of {format.size(size_bytes)}", None):
            file = kept.enter_context(make_probe_file(folder, size_bytes))
        yield file

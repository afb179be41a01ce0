"""The manifest of a run: everything that decides its figures, and no secret."""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import stallmark
from stallmark import engines
from stallmark.collectors.sampler import Collector
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, StallmarkError, as_reason
from stallmark.experiment.work import Work
from stallmark.loaders.ledger import Entry
from stallmark.record import devices
from stallmark.record.files import Reserve
from stallmark.record.manifest import Manifest, read_manifest, write_manifest
from stallmark.record.manifest.course import Collector as RecordedCollector
from stallmark.record.manifest.course import Database, Ended, Memory, Server, now
from stallmark.record.manifest.course import Scenario as RecordedScenario
from stallmark.record.manifest.course import Variant as RecordedVariant
from stallmark.record.manifest.storage import Array, Device, Devices, EmulatedArray, HookResult, Precondition
from stallmark.redact import definition_without_secrets
from stallmark.scenarios.load import objective as described_slo
from stallmark.scenarios.model import AnyScenario, Variant
from stallmark.stopping import StopSignal
from stallmark.storage.direct_io import describe, direct_io


@dataclass(frozen=True)
class Place:
    """The place of a run in its experiment, in the manifest's words."""

    experiment: str
    sequence: int
    repeat: int
    block: int
    again: bool = False
    resumed_after_s: float | None = None


@dataclass(frozen=True)
class PreparedStorage:
    """The storage that a variant is to run on: the array as the scenario describes it, and what was done to it."""

    array: Array | None = None
    hook: HookResult | None = None
    precondition: Precondition | None = None


def manifest(
    scenario: AnyScenario,
    variant: Variant,
    *,
    place: Place,
    work: Work,
    storage: PreparedStorage,
    engine: Engine,
    memory: Memory,
    loaded: Entry,
    collectors: Sequence[Collector],
    notes: Sequence[str],
) -> Manifest:
    """Describe a run that is about to begin."""
    identity, settings = engine.identity(), engines.settings(engine)
    return Manifest(
        kind="queries" if work.queries else "transactions",
        **vars(place),
        stallmark=stallmark.__version__,
        started=now(),
        scenario=RecordedScenario(**definition_without_secrets(scenario.model_dump(mode="json"))),
        variant=RecordedVariant(**definition_without_secrets(variant.model_dump(mode="json"))),
        server=Server(
            product=identity.product,
            version=identity.version_text,
            settings=settings.configuration,
            names=settings.names,
            placement=settings.placement,
            momentary=settings.momentary,
            unreadable=settings.unreadable,
            at_own_address=devices.has_address(engine.login().host),
            shared=engine.is_shared,
        ),
        memory=memory,
        database=Database(bytes_before=engines.bytes_used(engine), compressibility=loaded.compressibility),
        cache_start=scenario.start_cache,
        reset=str(scenario.reset),
        service_level=described_slo(scenario.slo) if scenario.slo else None,
        devices=devices_of(engine),
        collectors={collector.name: _describe(collector) for collector in collectors},
        machine=devices.machine_facts(),
        workload=work.workload,
        steps=work.steps,
        queries=work.queries,
        loads=work.loads,
        search=work.search,
        **vars(storage),
        notes=tuple(notes),
    )


def _describe(collector: Collector) -> RecordedCollector:
    reason = collector.unavailable()
    return RecordedCollector(
        title=collector.title,
        help=collector.help,
        interval_s=collector.interval_s,
        unavailable=reason,
        limited=None if reason else collector.limitation(),
    )


def devices_of(engine: Engine) -> Devices:
    """Describe what data and log of a server of ours are on; nothing for a server that is not ours."""
    folders, server = engine.directories(), engine.process()
    folder_facts = {name: describe(folder, server) for name, folder in folders.items()}
    for name, model in engine.devices.models.items():
        folder_facts[name] = Device(emulated_array=EmulatedArray(**asdict(model)))
    lay = {name: str(folder) for name, folder in folders.items()}
    built_in = {name: str(folder) for name, folder in engine.built_in().items()}
    tried = direct_io(folders["data"]) if "data" in folders and not engine.devices.models.get("data") else None
    return Devices.model_validate({"folders": lay, "built_in": built_in, "direct_io": tried, **folder_facts})


# The note in an experiment's last record that no other run followed, though one was to, and why.
class EndNote:
    """The note of one experiment. It is written before a variant is prepared, because a kill leaves no time for it, and
    taken back when that variant's record is there. Space for its reason is kept, as a record keeps its own."""

    def __init__(self) -> None:
        self._last: Path | None = None
        self._before = ""
        self._reserve: Reserve | None = None

    @property
    def applies(self) -> bool:
        """Return True if a run is being prepared and an earlier run has a record."""
        return self._last is not None

    def preparing(self, last: Path | None, variant: str) -> None:
        """Note that a variant is being prepared; `last` is the folder of the record made last, None if it is the
        first."""
        self._last, self._before = last, variant
        if last:
            self._reserve = self._reserve or Reserve(last.parent)
        self._write(Ended(before=variant))

    def opened(self) -> None:
        """Remove the note: the variant now has its own record, which will have its end."""
        self._write(None)
        self._last = None

    def record_failure(self, error: BaseException) -> None:
        """Write down for which error the variant was not run."""
        self.free()
        foreseen = isinstance(error, StallmarkError | CallFailed | OSError | StopSignal)
        because = as_reason(error) if foreseen else "Stallmark ended unexpectedly"
        self._write(Ended(before=self._before, because=because))

    def free(self) -> None:
        if self._reserve:
            self._reserve.free()

    def _write(self, ended: Ended | None) -> None:
        if self._last:
            with suppress(OSError, StallmarkError):  # somebody may have removed that record; nothing else hangs on it
                write_manifest(self._last, read_manifest(self._last).changed(ended=ended))

"""The manifest of a run record: everything that decides its figures, and no secret.

One model for runs of transactions and of queries; what a kind of run lacks is None or empty. The runs of a capability
have a model that adds fields to it. Its parts are in the modules beside. `manifest.json` is replaced whole with every
change, and nothing else reads or writes it.
"""

from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Field, model_validator

from stallmark import capabilities
from stallmark.errors import StallmarkError, with_path
from stallmark.record.files import as_model, as_text, read_format, write_whole
from stallmark.record.manifest.course import (
    Collector,
    Condition,
    Database,
    Ended,
    ExpectedMachines,
    External,
    LeftWaiting,
    LoadMachine,
    Machine,
    ManifestPart,
    Memory,
    Moment,
    Scenario,
    Server,
    TableFile,
    TableName,
    Took,
    Unheard,
    Variant,
)
from stallmark.record.manifest.storage import Array, Devices, HookResult, Precondition, Probes, ServiceLevelObjective
from stallmark.record.manifest.workload import Load, Queries, Search, Step, Workload

FORMAT: Final = 2
FILLED_BY = {"external": "attach"}
"""The fields of the manifest that a capability fills and shows, each with its name."""


class Manifest(ManifestPart):
    """The manifest.

    Attributes:
        sequence: the run's number in its experiment.
        again: True for the first variant, repeated at the end.
        external: attached measurements, by the suffix of their tables' names.
        tables: the tables that were completely written.
    """

    format: Literal[2] = FORMAT
    kind: Literal["transactions", "queries"] = "transactions"
    status: Literal["running", "complete", "incomplete"] = "running"
    incomplete_because: str | None = None
    stallmark: str = ""
    experiment: str = ""
    sequence: int | None = None
    repeat: int = 1
    block: int = 1
    again: bool = False
    resumed_after_s: Annotated[float, Field(ge=0, lt=1e10)] | None = None
    """Seconds between the last whole run of the experiment and its resumption with this one."""
    started: Moment
    scenario: Scenario = Scenario()
    variant: Variant = Variant()
    steps: tuple[Step, ...] = ()
    search: Search | None = None
    workload: Workload = Workload()
    loads: tuple[Load, ...] = ()
    """The loads of a run that has several; its `workload` then names those of the whole database."""
    queries: Queries | None = None
    server: Server = Server()
    memory: Memory = Memory()
    database: Database = Database()
    cache_start: str | None = None
    reset: str | None = None
    service_level: ServiceLevelObjective | None = None
    devices: Devices = Devices()
    array: Array | None = None
    hook: HookResult | None = None
    precondition: Precondition | None = None
    probes: Probes = Probes()
    collectors: dict[str, Collector] = {}
    conditions: tuple[Condition, ...] = ()
    machine: Machine = Machine()
    expected_machines: ExpectedMachines | None = None
    load_machines: tuple[LoadMachine, ...] = ()
    unheard: Unheard = Unheard()
    left_waiting: LeftWaiting = LeftWaiting()
    external: dict[TableName, External] = {}
    tables: dict[TableName, TableFile] = {}
    took: Took | None = None
    notes: tuple[str, ...] = ()
    ended: Ended | None = None

    @model_validator(mode="before")
    @classmethod
    def _streams_of_steps(cls, given: Any) -> Any:
        """Read a record that names the streams beside its users once for all steps, as older versions wrote it."""
        if not isinstance(given, dict) or "concurrent_streams" not in given:
            return given
        streams = (given["concurrent_streams"] or {}).get("streams", 0)
        rest = {key: value for key, value in given.items() if key != "concurrent_streams"}
        return rest | {"steps": [dict(step) | {"streams": streams} for step in given.get("steps", ())]}

    @model_validator(mode="before")
    @classmethod
    def _without_fields_of_probes(cls, given: Any) -> Any:
        """Read a record of a run that has the fields of a probe as null, as older versions wrote it."""
        if not isinstance(given, dict):
            return given
        return {key: value for key, value in given.items() if value is not None or key not in ("probe", "probe_plan")}

    @model_validator(mode="after")
    def _has_what_its_kind_needs(self) -> Self:
        if (self.kind == "queries") != (self.queries is not None):
            raise ValueError(f"kind {self.kind} does not fit the rest")
        if any(len(load.counts) != len(self.steps) for load in self.loads):
            raise ValueError("a load lacks its size in a step")
        return self


# Read and write `manifest.json`, the one file that holds the manifest of a record.

FILE = "manifest.json"
_REMEDY = "restore it, or leave this record out"


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a record's folder; raise StallmarkError, which names the file and the key at fault."""
    content = read_format(folder, FILE, "run record", FORMAT, _REMEDY)
    kind = content.get("kind", "transactions")
    if kind in capabilities.missing(capabilities.NAMES):
        raise StallmarkError(
            f"{folder} is a {kind}, which this installation does not support: read it with a complete installation."
        )
    return as_model(capabilities.part(kind, "manifest") or Manifest, content, folder / FILE, _REMEDY)


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest whole or not at all: it may be read at any moment. In a folder that takes no new file any
    more, its file is written over.

    Raise OSError, which names the file.
    """
    path = folder / FILE
    try:
        try:
            write_whole(path, manifest)
        except PermissionError:
            with path.open("r+") as file:
                file.write(as_text(manifest))
                file.truncate()
    except OSError as error:
        raise with_path(error, path) from None

"""The part of the model that all scenarios with a database share."""

from abc import abstractmethod
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stallmark.errors import StallmarkError
from stallmark.quantities import Pool
from stallmark.scenarios.array import Array
from stallmark.scenarios.backup import BackupChoice
from stallmark.scenarios.database import DatabaseChoice
from stallmark.scenarios.emulated_array import EmulatedArrays
from stallmark.scenarios.probing import PreconditionChoice, Probed
from stallmark.scenarios.run_order import Order, PlannedRun, run_order
from stallmark.scenarios.section import Titled, no_twins
from stallmark.scenarios.service_level import ServiceLevelChoice
from stallmark.scenarios.variant import Hook, Variant
from stallmark.scenarios.workload import WorkloadChoice
from stallmark.schema.placement.design import Design
from stallmark.storage.emulator import ArrayModel
from stallmark.transactions import find_workload

Observation = Literal["query_store", "io_latency"]


class AnyScenario(Titled):
    """A question to a database and its storage: what all scenarios say, whatever drives the server."""

    database: DatabaseChoice | None = None
    """Where the database's files lie, and how it is set, on a server named with --server."""
    buffer_pool: Pool | None = None
    """The memory for pages of all variants, as a size or as a share of the data as loaded: `2GiB`, `10 %`. Without it
    the server keeps its own."""
    emulated_array: EmulatedArrays | None = None
    """A disk array emulated beneath the embedded PostgreSQL, for all variants that have none of their own."""
    array: Array | None = None
    """Facts of the real array that no query tells, for all variants."""
    precondition: PreconditionChoice | None = None
    """Writes before the runs of a variant, until they are steady."""
    probe: Probed = None
    """Raw reads and writes around every run: `before and after`, or a mapping."""
    start_cache: Literal["cold", "prefilled", "as it is"] = "as it is"
    """Content of the buffer pool at the start of a run: `cold` is emptied, `prefilled` holds what fits."""
    reset: Literal["restore", "continue"] = "restore"
    """`restore` starts every run from the database as loaded, `continue` from what the run before has left."""
    backup: BackupChoice | None = None
    """How SQL Server writes and reads the backup of `reset: restore`."""
    observe: list[Observation] = []
    """Measurements beyond the ordinary, because they cost the server something."""
    repeats: Annotated[int, Field(ge=1, le=100, strict=True)] = 1
    """How often each variant is run. A verdict needs three of each or more."""
    order: Order = "alternating"
    """`alternating` is A B, A B; `abba` A B, B A; `blocks` A A, B B, and A again at the end."""
    slo: ServiceLevelChoice | None = None
    """The limit that reads are held against: `oltp`, `dss`, `mail`, or one of your own."""
    at_end: Hook | None = None
    """A command that is run when the experiment ends, however it does. In its arguments `{folder}`, `{state}`
    (complete, incomplete, stopped) and `{because}` are replaced."""
    variants: Annotated[list[Variant], Field(min_length=1)]
    """The sides of the comparison, at least one."""

    @property
    @abstractmethod
    def contents(self) -> WorkloadChoice:
        """Return the workload, or the workloads together, whose data the database holds."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        no_twins([variant.name for variant in self.variants])
        if twice := [name for name in self.observe if self.observe.count(name) > 1]:
            raise ValueError(f"observe names {twice[0]} twice: name it once")
        if self.at_end and self.at_end.ask:
            raise ValueError("at_end runs a command: nobody may be there to be asked")
        self._refuse_mixture()
        self._refuse_no_way_back()
        self._refuse_places()
        for workload, design in self.designs().items():
            try:
                design.check_tables(find_workload(workload).metadata)
            except StallmarkError as error:
                raise ValueError(f"database.tables: {error}") from None
        return self

    def designs(self) -> dict[str, Design]:
        """Return the physical designs that it asks for, by the workload, or the workloads together, of a database."""
        return {self.contents.name: self.database.design()} if self.database else {}

    def run_order(self) -> list[PlannedRun[Variant]]:
        """Return its runs, in the order in which they are made."""
        return run_order(self.variants, self.repeats, self.order)

    def pool_of(self, variant: Variant):
        return variant.buffer_pool or self.buffer_pool

    def emulates(self, variant: Variant) -> bool:
        return isinstance(variant.emulated_array or self.emulated_array, EmulatedArrays)

    def emulated_arrays_of(self, variant: Variant, data_bytes: int | None = None) -> dict[str, ArrayModel] | None:
        """Return the emulated arrays of a variant for a database of that size; None where storage is real.

        Raises StallmarkError for a share of the data that is no size a device can have.
        """
        arrays = variant.emulated_array or self.emulated_array
        return arrays.resolve(data_bytes) if isinstance(arrays, EmulatedArrays) else None

    def array_of(self, variant: Variant) -> Array | None:
        return variant.array.over(self.array) if variant.array else self.array

    def refuse_without(self) -> None:
        """Raise ValueError for a variant that leaves out loads where there is one."""
        if found := [variant.name for variant in self.variants if variant.without]:
            raise ValueError(f"variant {found[0]!r} is `without` a load, and there is one alone: write `loads:`")

    def _refuse_no_way_back(self) -> None:
        """Refuse a variant with no way back: the first may find its array as it is; one that follows upon another finds
        that of the other."""
        there, changed = None, False
        for run in self.run_order():
            if run.variant is there:
                continue
            there, variant = run.variant, run.variant
            if changed and not variant.before:
                raise ValueError(
                    f"variant {variant.name!r} comes after one that changes the array (`before`) and has no `before` "
                    "that changes it back: write one (each variant needs one that makes the array its own)"
                )
            changed = changed or bool(variant.before)

    def _refuse_places(self) -> None:
        """Refuse what cannot be where variants lie in folders of their own, which a restore puts them into."""
        if not any(variant.place for variant in self.variants):
            return
        if self.reset != "restore":
            raise ValueError("`place` restores a variant's database into its folders: leave out `reset: continue`")
        if self.precondition:
            raise ValueError("`precondition` writes before a database is in its place: remove it, or `place`")
        if self.probe and self.probe.folder:
            raise ValueError("probe.folder is one folder, and variants have each a `place`: leave the folder out")

    def _refuse_mixture(self) -> None:
        """Refuse a description of a real array, or a hook on one, beside an emulated array."""
        for variant in filter(self.emulates, self.variants):
            real = {
                "array": self.array_of(variant),
                "before": variant.before,
                "precondition": self.precondition,
                "probe.folder": self.probe and self.probe.folder,
            }
            if said := next((key for key, one in real.items() if one), None):
                raise ValueError(
                    f"variant {variant.name!r} runs on an emulated array (`emulated_array`), and `{said}` is of a "
                    "real one: remove one of the two"
                )

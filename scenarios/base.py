"""The part of the model that all scenarios with a database share."""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, Tag

from stallmark.errors import StallmarkError
from stallmark.quantities import PoolSize
from stallmark.scenarios import MAPPING, MOST_VARIANTS, WORD, EachOnce, NamedApart, Titled, WordOrMapping
from stallmark.scenarios.database import BackupChoice, DatabaseChoice, WorkloadChoice
from stallmark.scenarios.load import ServiceLevelChoice
from stallmark.scenarios.run_order import Order, PlannedRun, run_order
from stallmark.scenarios.storage import Array, EmulatedArrays, PreconditionChoice, Probed
from stallmark.scenarios.variant import (
    Cost,
    Hook,
    OwnReset,
    PoolCurve,
    PoolOrCurve,
    Settings,
    Variant,
    not_chosen,
    variant_of_size,
)
from stallmark.schema.placement import Design
from stallmark.storage.emulator import ArrayModel
from stallmark.transactions import find_workload

ResetChoice = Annotated[
    Annotated[Literal["restore", "continue"], Tag(WORD)] | Annotated[OwnReset, Tag(MAPPING)], WordOrMapping
]
Observation = Literal["query_store", "io_latency", "io_trace"]


class AnyScenario(Titled):
    """A question to a database and its storage: the keys of all scenarios, independent of the load."""

    database: DatabaseChoice | None = None
    """The placement of the database's files, and its settings, on a server named with --server."""
    buffer_pool: PoolOrCurve | None = None
    """The memory for pages of all variants, as a size or as a share of the data as loaded: `2GiB`, `10 %`; or a curve
    of sizes, `{curve: auto, from: 2 %, to: 100 %}`. Without it the server keeps its own."""
    settings: Settings = {}
    """Settings of the server while it is measured, by their own names: `{work_mem: 64MB}`. They are given back at the
    end, also after a kill."""
    restart: Hook | None = None
    """The restart of a PostgreSQL named with --server, for settings that need one, `buffer_pool` and a cold
    `start_cache`: `{command: [ssh, db, systemctl, restart, postgresql]}`, or `{ask: Restart the server.}`."""
    emulated_array: EmulatedArrays | None = None
    """A disk array emulated under the embedded PostgreSQL, for all variants that have none of their own."""
    array: Array | None = None
    """Facts of the real array that no query reports, for all variants."""
    precondition: PreconditionChoice | None = None
    """Writes before the runs of a variant, until they are steady."""
    probe: Probed = None
    """Raw reads and writes around every run: `before and after`, or a mapping."""
    start_cache: Literal["cold", "prefilled", "as it is"] = "as it is"
    """Content of the buffer pool at the start of a run: `cold` is emptied, `prefilled` holds what fits."""
    reset: ResetChoice = "restore"
    """State of the database before a run: `restore` as loaded, `continue` as the previous run left it. Your own
    database is restored before every run by `{restore: FILE}` or `{command: [program, argument]}`."""
    backup: BackupChoice | None = None
    """Options of SQL Server's backup for `reset: restore`."""
    observe: Annotated[list[Observation], EachOnce] = []
    """Measurements beyond the ordinary, because they cost the server something."""
    repeats: Annotated[int, Field(ge=1, le=100, strict=True)] = 1
    """Number of runs of each variant. A verdict requires at least three of each."""
    order: Order = "alternating"
    """Order of the runs: `alternating` is A B, A B; `abba` A B, B A; `blocks` A A, B B, and A again at the end."""
    cost: Cost | None = None
    """The cost of a GiB of memory and of flash, for memory against flash: `{memory: 4, flash: 0.2}`."""
    slo: ServiceLevelChoice | None = None
    """The limit that reads are held against: `oltp`, `dss`, `mail`, or one of your own."""
    at_end: Hook | None = None
    """A command that is run when the experiment ends, however it does. In its arguments `{folder}`, `{state}`
    (complete, incomplete, stopped) and `{because}` are replaced."""
    devices: Annotated[int, Field(ge=1, strict=True)] | None = None
    """The number of devices, at least, that `stallmark run` must be given with `--device`, unless `place`,
    `--data-dir`, `--wal-dir` or `--server` places the database."""
    variants: Annotated[list[Variant], Field(min_length=1, max_length=MOST_VARIANTS), NamedApart]
    """The sides of the comparison, at least one."""

    @property
    @abstractmethod
    def contents(self) -> WorkloadChoice:
        """Return the workload, or the workloads together, whose data the database holds."""

    def mistakes(self) -> Iterator[str]:
        if self.at_end and self.at_end.ask:
            yield "at_end runs a command: nobody may be there to be asked"
        if self.restart and not self._restarts():
            yield (
                "restart is for settings that need one, buffer_pool and start_cache: cold: write one of them, or leave "
                "it out"
            )
        yield from self._curved_variant_mistakes()
        yield from self._array_mistakes()
        yield from self._way_back_mistakes()
        yield from self._place_mistakes()
        for workload, design in self.designs().items():
            if given := [part.name for part in find_workload(workload).parts if part.is_given]:
                yield f"database places what Stallmark builds, and that of {given[0]} is yours: remove it"
            try:
                design.check_tables(find_workload(workload).metadata)
            except StallmarkError as error:
                yield f"database.tables: {error}"

    def _restarts(self) -> bool:
        """Return True if a key of the scenario may need a restart of the server."""
        has_settings = any(self.setting_for(variant, "settings") for variant in self.variants)
        return has_settings or self.start_cache == "cold" or any(map(self.pool_of, self.sized()))

    def designs(self) -> dict[str, Design]:
        """Return the physical designs that it asks for, by the workload, or the workloads together, of a database."""
        return {self.contents.name: self.database.design()} if self.database else {}

    def run_order(self, chosen: Sequence[int] = (), *, ended: bool = False) -> list[PlannedRun[Variant]]:
        """Return its runs, in the order in which they are made. Of a curve, with the sizes `chosen` so far, in bytes;
        until the choice has `ended` these are the most runs there may be."""
        return run_order(self._each_variant(chosen, ended), self.repeats, self.order)

    @property
    def curve(self) -> PoolCurve | None:
        return self.buffer_pool if isinstance(self.buffer_pool, PoolCurve) else None

    @property
    def curve_variant(self) -> Variant:
        """Return the variant that the curve is of: the one without a buffer pool of its own."""
        return next(variant for variant in self.variants if variant.buffer_pool is None)

    def with_size(self, size_bytes: int) -> Variant:
        """Return the variant that the curve is of, with one size."""
        return variant_of_size(self.curve_variant, size_bytes, alone=len(self.variants) == 1)

    def sized(self) -> list[Variant]:
        """Return the variants with the sizes that are known beforehand: of a curve its ends."""
        if not (curve := self.curve):
            return self.variants
        ends = [self.curve_variant.model_copy(update={"buffer_pool": end}) for end in (curve.from_, curve.to)]
        return [*ends, *(variant for variant in self.variants if variant.buffer_pool)]

    def same_storage(self, a: Variant, b: Variant | None) -> bool:
        """Return True if two variants are the same, or, on a memory curve, differ only in the size of the pool."""
        if b is None or not self.curve:
            return a is b
        return _but_size(a) == _but_size(b)

    def _each_variant(self, chosen: Sequence[int], ended: bool) -> list[Variant]:
        if not (curve := self.curve):
            return self.variants
        open_sizes = () if ended else range(len(chosen) + 1, curve.sizes + 1)
        sizes = [*map(self.with_size, chosen), *not_chosen(self.curve_variant, open_sizes)]
        return [sized for variant in self.variants for sized in ([variant] if variant.buffer_pool else sizes)]

    def pool_of(self, variant: Variant) -> PoolSize | None:
        return variant.buffer_pool or (self.buffer_pool if isinstance(self.buffer_pool, PoolSize) else None)

    def setting_for(self, variant: Variant, key: str) -> Any:
        """Return the value that a variant gives to a key of `Engine.variant_settings`; None if it leaves it alone."""
        return {**self.settings, **variant.settings} or None if key == "settings" else getattr(variant, key)

    def emulates(self, variant: Variant) -> bool:
        return isinstance(variant.emulated_array or self.emulated_array, EmulatedArrays)

    def emulated_arrays_of(self, variant: Variant, data_bytes: int | None = None) -> dict[str, ArrayModel] | None:
        """Return the emulated arrays of a variant for a database of that size; None if storage is real.

        Raises StallmarkError for a share of the data that is not a size a device can have.
        """
        arrays = variant.emulated_array or self.emulated_array
        return arrays.resolve(data_bytes) if isinstance(arrays, EmulatedArrays) else None

    def array_of(self, variant: Variant) -> Array | None:
        return variant.array.completed_by(self.array) if variant.array else self.array

    def without_mistakes(self) -> Iterator[str]:
        """Yield the mistake of a variant that leaves out the only load."""
        if without := [variant.name for variant in self.variants if variant.without]:
            yield f"variant {without[0]!r} is `without` a load, and there is one alone: write `loads:`"

    def curve_mistakes(self, reason: str) -> Iterator[str]:
        """Yield the mistake of a curve in a scenario that cannot have one."""
        if self.curve:
            yield f"buffer_pool is a curve, and {reason}: write a size or a share of the data"

    def _curved_variant_mistakes(self) -> Iterator[str]:
        """Yield the mistakes of a curve of no variant or several, and of an order that needs all sizes beforehand."""
        if not self.curve:
            return
        without = [variant.name for variant in self.variants if variant.buffer_pool is None]
        if not without:
            yield (
                "buffer_pool is a curve, and every variant has a buffer_pool of its own: leave out that of the variant "
                "that the curve is to be of"
            )
        if len(without) > 1:
            yield (
                f"buffer_pool is a curve, which is of one variant, and {without[0]!r} and {without[1]!r} have no "
                "buffer_pool of their own: write one for all others"
            )
        if self.order == "blocks":
            yield (
                "buffer_pool is a curve, whose sizes are chosen one after the other, and `order: blocks` makes all "
                "runs of one first: write alternating or abba"
            )

    def _way_back_mistakes(self) -> Iterator[str]:
        """Yield the mistake of a variant with no way back: the first may find its array as it is; a later one finds the
        array of another."""
        present, changed = None, False
        for run in self.run_order():
            if self.same_storage(run.variant, present):
                continue
            present, variant = run.variant, run.variant
            if changed and not variant.before:
                yield (
                    f"variant {variant.name!r} comes after one that changes the array (`before`) and has no `before` "
                    "that changes it back: write one (each variant needs one that makes the array its own)"
                )
            changed = changed or bool(variant.before)

    def _place_mistakes(self) -> Iterator[str]:
        """Yield the mistakes of variants in folders of their own, into which a restore puts them."""
        if not any(variant.place for variant in self.variants):
            return
        if self.reset != "restore":
            yield "`place` restores a variant's database into its folders: leave out `reset: continue`"
        if self.precondition:
            yield "`precondition` writes before a database is in its place: remove it, or `place`"
        if self.probe and self.probe.folder:
            yield "probe.folder is one folder, and variants have each a `place`: leave the folder out"

    def _array_mistakes(self) -> Iterator[str]:
        """Yield the mistake of a description of a real array, or of a hook on one, beside an emulated array."""
        for variant in filter(self.emulates, self.variants):
            real = {
                "array": self.array_of(variant),
                "before": variant.before,
                "precondition": self.precondition,
                "probe.folder": self.probe and self.probe.folder,
            }
            if text := next((key for key, value in real.items() if value), None):
                yield (
                    f"variant {variant.name!r} runs on an emulated array (`emulated_array`), and `{text}` is of a "
                    "real one: remove one of the two"
                )


def _but_size(variant: Variant) -> Variant:
    return variant.model_copy(update={"name": "", "buffer_pool": None})

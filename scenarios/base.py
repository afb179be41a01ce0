"""The part of the model that all scenarios with a database share."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from stallmark.errors import StallmarkError
from stallmark.quantities import Pool
from stallmark.scenarios.array import Array
from stallmark.scenarios.database import DatabaseChoice
from stallmark.scenarios.emulated_array import EmulatedArrays
from stallmark.scenarios.probing import PreconditionChoice, Probed
from stallmark.scenarios.run_order import Order, PlannedRun, run_order
from stallmark.scenarios.section import Section, no_twins
from stallmark.scenarios.service_level import ServiceLevelChoice
from stallmark.scenarios.variant import Variant
from stallmark.scenarios.workload import WorkloadChoice
from stallmark.schema.deploy import schemas_of
from stallmark.storage.emulator import ArrayModel
from stallmark.transactions import find_workload

Observation = Literal["query_store", "io_latency"]


class AnyScenario(Section):
    """A question to a database and its storage: what all scenarios say, whatever drives the server."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    title: str
    answers: str
    needs: str
    takes: str
    workload: WorkloadChoice
    database: DatabaseChoice | None = None
    buffer_pool: Pool | None = None
    emulated_array: EmulatedArrays | None = None
    array: Array | None = None
    precondition: PreconditionChoice | None = None
    probe: Probed = None
    start_cache: Literal["cold", "prefilled", "as it is"] = "as it is"
    reset: Literal["restore", "continue"]
    # What is measured beyond the ordinary, because it costs the server something.
    observe: list[Observation] = []
    repeats: Annotated[int, Field(ge=1, le=100, strict=True)] = 1
    order: Order = "alternating"
    slo: ServiceLevelChoice | None = None
    variants: Annotated[list[Variant], Field(min_length=1)]

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        no_twins([variant.name for variant in self.variants])
        if twice := [name for name in self.observe if self.observe.count(name) > 1]:
            raise ValueError(f"observe names {twice[0]} twice: name it once")
        self._refuse_mixture()
        self._refuse_no_way_back()
        if self.database:
            if len(schemas_of(find_workload(self.workload.name).metadata)) > 1:
                raise ValueError(
                    f"database places the tables of one workload, and {self.workload.name} has those of two: leave it "
                    "out, and make the database as it should lie before it is built"
                )
            try:
                self.database.design().check_tables(find_workload(self.workload.name).metadata)
            except StallmarkError as error:
                raise ValueError(f"database.tables: {error}") from None
        return self

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

    def _refuse_no_way_back(self) -> None:
        """The first variant may find its array as it is; one that follows upon another finds that of the other."""
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

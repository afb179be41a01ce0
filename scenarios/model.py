"""What a scenario file may say. Everything is checked here, before anything starts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from stallmark.analysis.compare.summary import PRIMARIES
from stallmark.driver.pacing import Arrivals
from stallmark.driver.timeline import Timeline, consecutive_steps
from stallmark.errors import StallmarkError
from stallmark.loaders.plan import checked_seed, loader_for
from stallmark.quantities import Pool, Seconds
from stallmark.scenarios.array import Array
from stallmark.scenarios.database import DatabaseChoice
from stallmark.scenarios.device_choice import Devices
from stallmark.scenarios.hook import Hook
from stallmark.scenarios.part import Part
from stallmark.scenarios.probing import PreconditionChoice, Probed
from stallmark.scenarios.queries import QueriesChoice, StreamsBeside
from stallmark.scenarios.raw import RawScenario
from stallmark.scenarios.run_order import Order, Turn, turns
from stallmark.scenarios.service_level import ServiceLevelChoice
from stallmark.scenarios.variants import VariantName, refuse_twins
from stallmark.scenarios.warm_up import UntilSteady, WarmUp
from stallmark.schema.deploy import schemas_of
from stallmark.storage.emulator import DeviceModel
from stallmark.transactions import WORKLOADS, find_workload
from stallmark.transactions.mix import background_per_user, deck_of
from stallmark.transactions.warehouse.streams import MOST_STREAMS, streams_for

Observation = Literal["query_store", "io_latency"]
Weight = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class WorkloadChoice(Part):
    """Which database and transactions. `scale` is in the workload's own measures: `branches` for bank.

    `mix` has weights of the transactions that users start, or a `read_share`; `locality` is the share of its customers
    that each of several load machines takes from a part that is its own.
    """

    name: Literal[WORKLOADS]  # type: ignore[valid-type]
    scale: Annotated[dict[str, int | float], Field(validate_default=True)] = {}
    seed: Annotated[int, Field(ge=0, strict=True)] = 1
    mix: Annotated[dict[str, Weight], Field(min_length=1)] | None = None
    locality: Annotated[float, Field(ge=0, le=1)] = 0.0

    @field_validator("scale")
    @classmethod
    def _complete(cls, given: dict[str, int | float], info: ValidationInfo) -> dict[str, int | float]:
        """What was left out has the workload's own defaults."""
        if "name" not in info.data:  # refused already
            return given
        try:
            return loader_for(info.data["name"]).scale(given)
        except StallmarkError as error:
            raise ValueError(str(error)) from None

    @field_validator("seed")
    @classmethod
    def _possible(cls, given: int) -> int:
        try:
            return checked_seed(given)
        except StallmarkError as error:
            raise ValueError(str(error)) from None

    @field_validator("mix")
    @classmethod
    def _dealt(cls, given: dict[str, float] | None, info: ValidationInfo) -> dict[str, float] | None:
        if given is not None and "name" in info.data:
            try:
                deck_of(find_workload(info.data["name"]), given)
            except StallmarkError as error:
                raise ValueError(str(error)) from None
        return given

    @field_validator("locality")
    @classmethod
    def _in_parts(cls, given: float, info: ValidationInfo) -> float:
        if given and "name" in info.data and not find_workload(info.data["name"]).has_parts:
            raise ValueError(
                f"{info.data['name']} has no customers of which a load machine could have a part: remove it"
            )
        return given

    def deck(self) -> dict[str, int]:
        """Cards of each transaction that users may start."""
        return deck_of(find_workload(self.name), self.mix)

    def __str__(self) -> str:
        return f"{self.name} ({', '.join(f'{measure} {value:,}' for measure, value in self.scale.items())})"


class Variant(Part):
    """One side of a comparison. What it does not say is as the scenario says."""

    name: VariantName
    buffer_pool: Pool | None = None
    device: Devices | Literal["bare"] | None = None
    array: Array | None = None
    # What makes the array that of this variant, whenever another one ran before.
    before: Hook | None = None
    # Of queries beside the users; 0: the users alone.
    streams: Annotated[int, Field(ge=0, le=MOST_STREAMS, strict=True)] | None = None


class OpenLoop(Part):
    """Transactions arrive at `rate` per second, whatever the server does."""

    kind: Literal["fixed", "poisson"]
    rate: Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ThinkTime(Part):
    mean: Seconds
    kind: Literal["constant", "exponential"] = "exponential"


class AnyScenario(Part):
    """A question to a database and its storage: what all scenarios say, whatever drives the server."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]*$")]
    title: str
    answers: str
    needs: str
    takes: str
    workload: WorkloadChoice
    database: DatabaseChoice | None = None
    buffer_pool: Pool | None = None
    device: Devices | None = None
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
        refuse_twins([variant.name for variant in self.variants])
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

    def turns(self) -> list[Turn[Variant]]:
        """Its runs, in the order in which they are made."""
        return turns(self.variants, self.repeats, self.order)

    def pool_of(self, variant: Variant):
        return variant.buffer_pool or self.buffer_pool

    def emulates(self, variant: Variant) -> bool:
        return isinstance(variant.device or self.device, Devices)

    def devices_of(self, variant: Variant, data_bytes: int | None = None) -> dict[str, DeviceModel] | None:
        """With a database of that size; None where the devices are the real ones.

        Raises StallmarkError for a share of the data that is no size a device can have.
        """
        devices = variant.device or self.device
        return devices.resolve(data_bytes) if isinstance(devices, Devices) else None

    def array_of(self, variant: Variant) -> Array | None:
        return variant.array.over(self.array) if variant.array else self.array

    def _refuse_no_way_back(self) -> None:
        """The first variant may find its array as it is; one that follows upon another finds that of the other."""
        there, changed = None, False
        for turn in self.turns():
            if turn.variant is there:
                continue
            there, variant = turn.variant, turn.variant
            if changed and not variant.before:
                raise ValueError(
                    f"variant {variant.name!r} comes after one that changes the array (`before`) and has no `before` "
                    "that changes it back: write one (each variant needs one that makes the array its own)"
                )
            changed = changed or bool(variant.before)

    def _refuse_mixture(self) -> None:
        """What is said of a real array is not true of an emulated one, and what is done to it would go unseen."""
        for variant in filter(self.emulates, self.variants):
            real = {
                "array": self.array_of(variant),
                "before": variant.before,
                "precondition": self.precondition,
                "probe.folder": self.probe and self.probe.folder,
            }
            if said := next((key for key, one in real.items() if one), None):
                raise ValueError(
                    f"variant {variant.name!r} runs on an emulated device (`device`), and `{said}` is of a real one: "
                    "remove one of the two"
                )


class Scenario(AnyScenario):
    """One in which users execute transactions, for a time."""

    users: Annotated[list[Annotated[int, Field(ge=1, le=10_000, strict=True)]], Field(min_length=1)]
    ramp: Annotated[Seconds, Field(ge=0)] = 0.0
    warm_up: WarmUp
    measure: Annotated[Seconds, Field(ge=1)]
    arrivals: Literal["closed"] | OpenLoop = "closed"
    think_time: ThinkTime | None = None
    call_timeout: Annotated[Seconds, Field(ge=0.1)] = 60.0
    # What variants are compared by. It is declared before anything runs, or it could be chosen by how it came out.
    primary: Literal[PRIMARIES] = "tps"  # type: ignore[valid-type]
    beside: StreamsBeside | None = None

    @model_validator(mode="before")
    @classmethod
    def _one_number_of_users(cls, data: dict) -> dict:
        if isinstance(data, dict) and "users" in data and not isinstance(data["users"], list):
            return dict(data) | {"users": [data["users"]]}
        return data

    @model_validator(mode="after")
    def _has_load(self) -> Self:
        if not find_workload(self.workload.name).deck:
            raise ValueError(
                f"{self.workload.name} has no transactions that users could execute: write `queries: {{run: power}}` "
                "in place of users, warm_up and measure"
            )
        if self.beside and not find_workload(self.workload.name).queries:
            raise ValueError(
                f"beside: {self.workload.name} has no queries for streams: set workload.name to htap, which has the "
                "brokerage's users and the warehouse's queries, or leave it out"
            )
        if not self.beside and (asked := [one.name for one in self.variants if one.streams is not None]):
            raise ValueError(
                f"variant {asked[0]!r} has streams, and there is no section `beside` that says of what: write one, or "
                "remove them"
            )
        if self.think_time and self.arrivals != "closed":
            raise ValueError("think_time belongs to a closed loop: remove it, or set arrivals: closed")
        return self

    def streams_of(self, variant: Variant) -> int:
        """Streams of queries beside the users."""
        if self.beside is None:
            return 0
        return self.beside.streams if variant.streams is None else variant.streams

    def arrival_plan(self) -> Arrivals:
        if isinstance(self.arrivals, OpenLoop):
            return Arrivals(self.arrivals.kind, rate=self.arrivals.rate)
        if self.think_time:
            return Arrivals("closed", think_ms=self.think_time.mean * 1000, think=self.think_time.kind)
        return Arrivals()

    def timeline(self) -> Timeline:
        limits = self.warm_up.limits() if isinstance(self.warm_up, UntilSteady) else None
        warm_up_s = self.warm_up.at_most if isinstance(self.warm_up, UntilSteady) else self.warm_up
        steps = consecutive_steps(self.users, ramp_s=self.ramp, warm_up_s=warm_up_s, measure_s=self.measure)
        background = background_per_user(find_workload(self.workload.name), self.workload.deck())
        return Timeline(steps, self.arrival_plan(), self.workload.seed, background, limits)

    def run_seconds(self) -> float:
        """How long users run in all, without loading and preparing; at most, where a steady state is waited for."""
        return self.timeline().end_s * len(self.turns())


_OF_USERS = set(Scenario.model_fields) - set(AnyScenario.model_fields)


class QueryScenario(AnyScenario):
    """One in which streams execute queries, to their end."""

    queries: QueriesChoice

    @model_validator(mode="before")
    @classmethod
    def _no_users(cls, data: dict) -> dict:
        if isinstance(data, dict) and (found := sorted(_OF_USERS & set(data))):
            raise ValueError(
                f"{found[0]} belongs to users who execute transactions, and `queries` has streams in their place: "
                "remove one of the two"
            )
        return data

    @model_validator(mode="after")
    def _has_queries(self) -> Self:
        if not find_workload(self.workload.name).queries:
            raise ValueError(
                f"{self.workload.name} has no queries for streams: write users, warm_up and measure in place of "
                "`queries`, or set workload.name: warehouse"
            )
        if asked := [one.name for one in self.variants if one.streams is not None]:
            raise ValueError(
                f"variant {asked[0]!r} has streams, which are those beside users: write queries.streams, or remove them"
            )
        return self

    @property
    def streams(self) -> int:
        """In a throughput run."""
        return self.queries.streams or streams_for(self.workload.scale["factor"])


def model_for(document: Mapping[str, Any]) -> type[Scenario] | type[QueryScenario] | type[RawScenario]:
    """Which of the three a scenario file means."""
    if "raw" in document:
        return RawScenario
    return QueryScenario if "queries" in document else Scenario


SHIPPED = Path(__file__).parent

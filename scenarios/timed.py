"""A load planned by time, in steps with a warm-up and a measured interval: users of one workload, or several loads
at once."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Discriminator, Field, Tag

from stallmark.analysis.metrics import PRIMARIES
from stallmark.driver.load import BETWEEN_LEVELS_S, COOL_DOWN_S, Timeline, WarmUpLimits, consecutive_steps
from stallmark.quantities import Seconds, write_duration
from stallmark.scenarios import MAPPING, WORD, Rising, Section, WordOrMapping, refusing
from stallmark.scenarios.base import AnyScenario
from stallmark.scenarios.database import DatabaseChoice, Seed, WorkloadChoice
from stallmark.scenarios.load import Load, RawLoad, Search, ServiceLevelChoice, StreamsLoad, Users, UsersLoad
from stallmark.scenarios.variant import Variant
from stallmark.schema import joined, parts_of
from stallmark.schema.placement import Design
from stallmark.stats.thresholds import CEILING_LONGEST
from stallmark.transactions import find_workload, known_name

# A scenario whose load is planned by time: steps one after the other, each with a warm-up and a measured interval.


class UntilSteady(Section):
    """A warm-up until the load is steady, `warm_up: {until: steady, at_most: …}`, in every step after its ramp."""

    until: Literal["steady"]
    """The only word there is: `steady`."""
    at_least: Annotated[Seconds, Field(ge=0)] = 30.0
    """The shortest warm-up."""
    at_most: Annotated[Seconds, Field(ge=1)]
    """The longest: a load that is not steady by then is measured, and the report notes it."""

    def mistakes(self) -> Iterator[str]:
        if self.at_most <= self.at_least:
            yield (
                f"at_most {write_duration(self.at_most)} leaves no time to wait after at_least "
                f"{write_duration(self.at_least)}: raise it"
            )

    def limits(self) -> WarmUpLimits:
        return WarmUpLimits(self.at_least, self.at_most)


WarmUp = Annotated[Annotated[Seconds, Field(ge=0), Tag(WORD)] | Annotated[UntilSteady, Tag(MAPPING)], WordOrMapping]


@dataclass(frozen=True)
class PlannedStep:
    """A step of the load."""

    name: str
    counts: Mapping[str, int]
    """The users, streams, or cells of raw I/O of each load; loads without a number rest."""
    alone: str | None = None
    """The load that runs by itself, if one does."""
    cells: int | None = None
    """The number of copies of every load."""


@dataclass(frozen=True)
class Searched:
    """A search, and the load that it is of by its name; None if it is of the `rates` of all loads at once."""

    search: Search
    load: str | None
    slo: ServiceLevelChoice
    rates: Mapping[str, float] = field(default_factory=dict)

    @property
    def times(self) -> float:
        """Return the multiple of their own rates that loads begin with."""
        return self.search.from_ if self.rates else 1.0


class TimedScenario(AnyScenario):
    """Loads drive the server, for a time."""

    ramp: Annotated[Seconds, Field(ge=0)] = 0.0
    """The time over which the users of a step start."""
    warm_up: WarmUp = 30.0
    """The time before each step is measured, or `{until: steady, at_most: 1h}`."""
    measure: Annotated[Seconds, Field(ge=1)]
    """The time that each step is measured."""
    primary: Literal[PRIMARIES] = "tps"  # type: ignore[valid-type]
    """The metric that variants are compared by. It is declared before anything runs, or it could be chosen by how it
    came out."""

    @abstractmethod
    def loads_of(self, variant: Variant) -> Mapping[str, Load]:
        """Return the loads that run in a variant, by name."""

    def searched_of(self, variant: Variant) -> Searched | None:
        """Return the search of a variant's runs; None if steps are fixed."""
        for name, load in self.loads_of(variant).items():
            if isinstance(load, UsersLoad) and load.search and (slo := load.slo or self.slo):
                return Searched(load.search, name, slo)
        return None

    @abstractmethod
    def steps_of(self, variant: Variant) -> Sequence[PlannedStep]:
        """Return the steps of a variant's runs, in order."""

    @property
    def longest_warm_up_s(self) -> float:
        return self.warm_up.at_most if isinstance(self.warm_up, UntilSteady) else self.warm_up

    @property
    def most_cells(self) -> int:
        """Return the number of cells that the database holds data for."""
        return 1

    def scale_of(self, choice: WorkloadChoice) -> Mapping[str, int | float]:
        """Return the scale of a load's workload as the database has it, for all cells."""
        return find_workload(choice.name).for_cells(choice.scale, self.most_cells)

    def timeline(self, variant: Variant) -> Timeline:
        """Return the times of a variant's steps. The users of a step are those of all loads together."""
        limits = self.warm_up.limits() if isinstance(self.warm_up, UntilSteady) else None
        warm_up_s = self.longest_warm_up_s
        loads = self.loads_of(variant)
        planned = [
            (step.name, sum(count for load, count in step.counts.items() if isinstance(loads[load], UsersLoad)))
            for step in self.steps_of(variant)
        ]
        steps = consecutive_steps(planned, ramp_s=self.ramp, warm_up_s=warm_up_s, measure_s=self.measure)
        one_s = self.ramp + warm_up_s + CEILING_LONGEST * self.measure + BETWEEN_LEVELS_S
        searched = self.searched_of(variant)
        reserve_s = searched.search.spec().most_levels * one_s - steps[-1].end_s if searched else 0.0
        return Timeline(steps, limits, reserve_s)

    def usual_s(self, variant: Variant) -> float:
        """Return the usual duration of a variant's load: a search rarely needs all its levels, and few levels take
        longer than planned.
        """
        timeline = self.timeline(variant)
        if not (searched := self.searched_of(variant)):
            return timeline.end_s
        return searched.search.spec().usual_levels * (timeline.steps[0].end_s + BETWEEN_LEVELS_S) + COOL_DOWN_S


# A scenario of one load: users execute the transactions of a workload, for a time.
class Scenario(Users, TimedScenario):
    """Users execute transactions, for a time."""

    heading = "Users who execute transactions"
    workload: WorkloadChoice
    """The database, and what users do in it."""

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if len(parts_of(self.workload.name)) > 1:
            yield f"{self.workload.name} is several workloads: write each as a load of its own, below loads"
        if not find_workload(self.workload.name).users.deck:
            yield (
                f"{self.workload.name} has no transactions that users could execute: write `queries: {{run: power}}` "
                "in place of users, warm_up and measure"
            )
        yield from self.transaction_mistakes(self.workload.name, self.slo)
        yield from self.search_mistakes(self.slo)
        yield from self.without_mistakes()
        if self.search:
            yield from self.curve_mistakes("a search finds a ceiling of one size of memory")
        if len(self.counts) > 1:
            yield from self.curve_mistakes("there are several numbers of users, each with another curve")

    @property
    def contents(self) -> WorkloadChoice:
        return self.workload

    def loads_of(self, variant: Variant) -> Mapping[str, UsersLoad]:
        choice = self.workload
        own = {name: getattr(self, name) for name in Users.model_fields}
        own |= {name: getattr(choice, name) for name in ("scale", "mix", "locality")}
        # All of it was validated as the scenario's own.
        return {choice.name: UsersLoad.model_construct(workload=choice.name, slo=self.slo, **own)}

    def steps_of(self, variant: Variant) -> Sequence[PlannedStep]:
        if self.search:
            return [PlannedStep(self.search.spec().name_of(self.search.from_), {self.workload.name: self.counts[0]})]
        return [PlannedStep(f"{users} users", {self.workload.name: users}) for users in self.counts]


# A scenario of several loads at once in one database: users, streams of queries, and raw I/O.
#
# loads:
#   mail:    {workload: mail, scale: {mailboxes: 200}, users: 20}
#   bank:    {workload: bank, users: 50, arrivals: {kind: poisson, rate: 200}}
#   reports: {workload: warehouse, scale: {factor: 1}, streams: 2, arrivals: {kind: poisson, rate: 0.05}}
#   scan:    {raw: scan}
# alone: true                                      # each by itself first
# cells: [1, 2, 4]                                 # or: numbers of copies of all loads, each on its own data

LoadName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$", max_length=20)]


def _kind(given: Any) -> str:
    """Return the kind of a load, by the key that only one kind has."""
    has = given.__contains__ if isinstance(given, Mapping) else lambda key: hasattr(given, key)
    return "raw I/O" if has("raw") else "queries" if has("streams") else "transactions"


LoadChoice = Annotated[
    Annotated[UsersLoad, Tag("transactions")]
    | Annotated[StreamsLoad, Tag("queries")]
    | Annotated[RawLoad, Tag("raw I/O")],
    Discriminator(_kind),
]
WorkloadName = Annotated[str, AfterValidator(refusing(known_name))]
Cells = Annotated[int, Field(ge=1, le=64, strict=True)]


class LoadsScenario(TimedScenario):
    """Several loads at once, for a time."""

    heading = "Several loads at once"
    loads: Annotated[dict[LoadName, LoadChoice], Field(min_length=1)]
    """The loads by their names: users (`workload`, `users`), streams of queries (`workload: warehouse`, `streams`), or
    raw I/O (`raw`)."""
    seed: Seed = 1
    """The seed of all data and inputs: the same seed makes the same database and the same load."""
    alone: Literal[True, False, "only"] = False
    """Run each load by itself first, in steps of their own: so a report shows what the others cost it. `only`: they
    never run together."""
    search: Search | None = None
    """In place of fixed rates, the search for the highest multiple of the `arrivals.rate` of all loads at which `slo`
    holds: `{of: load, from: 0.5, to: 8}`. Loads in a closed loop run beside them as they are."""
    cells: Annotated[list[Cells], Field(min_length=1), Rising] | None = None
    """Numbers of copies of all loads, one step each: `[1, 2, 4]`. Every copy has data of its own."""

    databases: Annotated[dict[WorkloadName, DatabaseChoice], Field(min_length=2)] | None = None
    """A database for each workload, all on one server, instead of one for all: `{bank: {}, mail: {}}`, each with the
    keys of `database`. Their names are that of the server's database and the workload's."""

    def mistakes(self) -> Iterator[str]:
        yield from super().mistakes()
        if not any(isinstance(load, UsersLoad) for load in self.loads.values()):
            yield "no load has users who execute transactions: add one, such as {workload: bank, users: 10}"
        if self.cells and self.alone:
            yield "alone and cells are two experiments: leave one of them out"
        yield from self._folder_mistakes()
        yield from self._load_search_mistakes()
        yield from self._search_mistakes()
        lengths = {name: len(counts) for name, load in self.loads.items() if len(counts := _counts(load)) > 1}
        for (first, length), (other, another) in pairwise(lengths.items()):
            if length != another:
                yield (
                    f"{first} has {length} numbers and {other} has {another}: a list has a number for each step, so "
                    "write as many, or one number for all"
                )
        for variant in self.variants:
            if unknown := [name for name in variant.without if name not in self.loads]:
                yield f"variant {variant.name!r} is without {unknown[0]}, which is no load: remove it"
            if not any(isinstance(load, UsersLoad) for load in self.loads_of(variant).values()):
                yield f"variant {variant.name!r} is without any load that has users: leave one"
        yield from self.curve_mistakes("reads per transaction cannot be told of several loads at once")
        yield from self._database_mistakes(parts_of(self.contents.name))

    def _folder_mistakes(self) -> Iterator[str]:
        """Yield the mistake of two folders of one name, or of copies of a load whose data are the user's."""
        own = {name: load for name, load in self.loads.items() if isinstance(load, UsersLoad) and load.sql}
        for (first, load), (other, another) in combinations(own.items(), 2):
            if load.workload == another.workload and load.sql != another.sql:
                yield (
                    f"the SQL of {first} and that of {other} are both called {load.workload}: write another `name:` in "
                    "the workload.yaml of one"
                )
        if self.cells and own:
            yield (
                f"cells are copies of loads, each on data of its own, and the data of {next(iter(own))} are yours: "
                "write `users: [10, 20]` in place of cells"
            )

    def _database_mistakes(self, wanted: Sequence[str]) -> Iterator[str]:
        """Yield the mistakes of `databases` that are not those of the workloads that are wanted."""
        if self.databases is None:
            return
        if self.database:
            yield "database is one for all, and databases are one each: leave one of them out"
        if len(wanted) < 2:
            yield f"databases are of several workloads, and the loads have {wanted[0]} alone: remove it"
        for name in wanted:
            if name not in self.databases:
                yield f"databases leaves out {name}, whose data a load needs: write {name}: {{}}"
        for name in self.databases:
            if name not in wanted:
                yield f"databases names {name}, which no load has: remove it"
        if len([name for name, database in self.databases.items() if database.tempdb]) > 1:
            yield "tempdb is one for all databases: write it below one of them"

    def designs(self) -> dict[str, Design]:
        if self.databases is None:
            return super().designs()
        return {name: choice.design() for name, choice in self.databases.items() if choice != DatabaseChoice()}

    def _load_search_mistakes(self) -> Iterator[str]:
        """Yield the mistakes of a search beside steps of other loads, or beside another search."""
        searched = {name: load for name, load in self.loads.items() if isinstance(load, UsersLoad) and load.search}
        if not searched:
            return
        if len(searched) > 1:
            yield f"{' and '.join(searched)} have a search each, and one load can have one: leave one"
        [(name, load)] = searched.items()
        yield from load.search_mistakes(load.slo or self.slo)
        if self.cells or self.alone:
            yield f"{name} has a search, which makes the steps: leave out cells and alone"
        if stepped := [other for other, spec in self.loads.items() if len(_counts(spec)) > 1]:
            yield f"{name} has a search, which makes the steps, and {stepped[0]} a list: write one number"
        for variant in self.variants:
            if name in variant.without:
                yield f"variant {variant.name!r} is without {name}, which has the search: leave it in"

    def _search_mistakes(self) -> Iterator[str]:
        """Yield the mistakes of a search of all loads: nothing to multiply, no limit, or other steps beside."""
        if self.search is None:
            return
        if self.search.of != "load":
            yield f"search beside loads is of: load, and one of {self.search.of} belongs in a load: move it"
        if own := [name for name, load in self.loads.items() if isinstance(load, UsersLoad) and load.search]:
            yield f"{own[0]} has a search, and so have all loads together: leave one of them out"
        if self.slo is None:
            yield "search needs a service level: add slo, such as oltp or {read: 10ms}"
        if self.cells or self.alone:
            yield "search makes the steps: leave out cells and alone"
        if stepped := [name for name, load in self.loads.items() if len(_counts(load)) > 1]:
            yield f"search makes the steps, and {stepped[0]} has a list: write one number"
        for variant in self.variants:
            if not self._rates_of(variant):
                yield (
                    f"search multiplies the rates of loads, and none of variant {variant.name!r} has one: write "
                    "arrivals: {kind: poisson, rate: 100}"
                )

    def _rates_of(self, variant: Variant) -> dict[str, float]:
        loads = self.loads_of(variant).items()
        plans = {name: load.arrival_plan() for name, load in loads if not isinstance(load, RawLoad)}
        return {name: plan.rate for name, plan in plans.items() if plan.rate is not None}

    def searched_of(self, variant: Variant) -> Searched | None:
        if self.search is None or self.slo is None:
            return super().searched_of(variant)
        return Searched(self.search, None, self.slo, self._rates_of(variant))

    @property
    def contents(self) -> WorkloadChoice:
        """Return the workloads in the database as one choice, with enough data for the largest number of cells.

        Raise ValueError if two loads request the same workload, or a shared measure, in two scales.
        """
        scales: dict[str, tuple[str, dict[str, Any]]] = {}
        for name, load in self.loads.items():
            if isinstance(load, RawLoad):
                continue
            choice = load.choice()
            first, scale = scales.setdefault(choice.name, (name, choice.scale))
            if scale != choice.scale:
                raise ValueError(f"{first} and {name} are in one database and ask for two scales of {choice.name}")
        together: dict[str, Any] = {}
        for workload, (_, scale) in sorted(scales.items()):
            whole = find_workload(workload).for_cells(scale, self.most_cells)
            if twice := [name for name, value in whole.items() if together.get(name, value) != value]:
                raise ValueError(f"{twice[0]} is of the whole database, and loads ask for two: write one")
            together |= whole
        name = joined(scales, apart=self.databases is not None)
        return WorkloadChoice(name=name, scale=together, seed=self.seed)

    @property
    def most_cells(self) -> int:
        return max(self.cells or [1])

    def loads_of(self, variant: Variant) -> Mapping[str, Load]:
        return {name: load for name, load in self.loads.items() if name not in variant.without}

    def steps_of(self, variant: Variant) -> Sequence[PlannedStep]:
        loads = self.loads_of(variant)
        steps = max(len(_counts(load)) for load in loads.values())
        by_step = [{name: _count_in_step(load, index) for name, load in loads.items()} for index in range(steps)]
        if searched := self.searched_of(variant):
            level = searched.search.spec().name_of(searched.search.from_)
            return [PlannedStep(f"{searched.load}: {level}" if searched.load else level, by_step[0])]
        if self.cells:
            return [
                PlannedStep(
                    f"{cells} cell{'s' * (cells > 1)}" + _counts_suffix(counts, steps),
                    _times(counts, cells),
                    cells=cells,
                )
                for cells in self.cells
                for counts in by_step
            ]
        return [
            *(self._steps_alone(loads, by_step) if self.alone else []),
            *(self._steps_together(by_step) if self.alone != "only" else []),
        ]

    def _steps_alone(self, loads: Mapping[str, Load], by_step: Sequence[Mapping[str, int]]) -> Iterator[PlannedStep]:
        for name in loads:
            for counts in by_step:
                yield PlannedStep(
                    f"{name} alone" + _counts_suffix({name: counts[name]}, len(by_step)), {name: counts[name]}, name
                )

    def _steps_together(self, by_step: Sequence[Mapping[str, int]]) -> Iterator[PlannedStep]:
        for counts in by_step:
            yield PlannedStep(
                ("together" if self.alone else "all loads") + _counts_suffix(counts, len(by_step)), counts
            )


def _counts_suffix(counts: Mapping[str, int], steps: int) -> str:
    """Return the numbers in words if the scenario has several steps, which differ by these numbers."""
    return ": " + ", ".join(f"{name} {count}" for name, count in counts.items()) if steps > 1 else ""


def _counts(load: Load) -> Sequence[int]:
    return [1] if isinstance(load, RawLoad) else load.counts if isinstance(load, UsersLoad) else load.streams


def _count_in_step(load: Load, index: int) -> int:
    counts = _counts(load)
    return counts[index] if len(counts) > 1 else counts[0]


def _times(counts: Mapping[str, int], cells: int) -> dict[str, int]:
    return {name: count * cells for name, count in counts.items()}

"""A load planned by time, in steps with a warm-up and a measured interval; users execute transactions in it."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field, Tag

from stallmark.analysis.metrics import PRIMARIES
from stallmark.driver.load import BETWEEN_LEVELS_S, COOL_DOWN_S, Step, Timeline, WarmUpLimits
from stallmark.quantities import Seconds, write_duration
from stallmark.scenarios.base import AnyScenario
from stallmark.scenarios.database import WorkloadChoice
from stallmark.scenarios.load import Load, ServiceLevelChoice, Users, UsersLoad
from stallmark.scenarios.search import Search
from stallmark.scenarios.section import MAPPING, WORD, Section, WordOrMapping
from stallmark.scenarios.variant import Variant
from stallmark.schema import parts_of
from stallmark.stats.thresholds import CEILING_LONGEST
from stallmark.transactions import find_workload

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
        steps: list[Step] = []
        seen: Counter[str] = Counter()
        for planned in self.steps_of(variant):
            begin_s = steps[-1].end_s if steps else 0.0
            measure_s = begin_s + self.ramp + warm_up_s
            seen[planned.name] += 1
            # One that comes again has another history.
            name = planned.name if seen[planned.name] == 1 else f"{planned.name} ({seen[planned.name]})"
            users = sum(count for load, count in planned.counts.items() if isinstance(loads[load], UsersLoad))
            steps.append(Step(name, users, begin_s, self.ramp, measure_s, measure_s + self.measure))
        one_s = self.ramp + warm_up_s + CEILING_LONGEST * self.measure + BETWEEN_LEVELS_S
        searched = self.searched_of(variant)
        reserve_s = searched.search.spec().most_levels * one_s - steps[-1].end_s if searched else 0.0
        return Timeline(tuple(steps), limits, reserve_s)

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

"""A scenario of one load: users execute the transactions of a workload, for a time."""

from collections.abc import Iterator, Mapping, Sequence

from stallmark.scenarios.load import Users, UsersLoad
from stallmark.scenarios.timed import PlannedStep, TimedScenario
from stallmark.scenarios.variant import Variant
from stallmark.scenarios.workload import WorkloadChoice
from stallmark.schema.several import parts_of
from stallmark.transactions import find_workload


class Scenario(Users, TimedScenario):
    """Users execute transactions, for a time."""

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
            return [PlannedStep(self.search.asked().name_of(self.search.from_), {self.workload.name: self.counts[0]})]
        return [PlannedStep(f"{users} users", {self.workload.name: users}) for users in self.counts]

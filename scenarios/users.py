"""A scenario of one load: users execute the transactions of a workload, for a time."""

from collections.abc import Mapping, Sequence
from typing import Self

from pydantic import model_validator

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

    @model_validator(mode="after")
    def _has_load(self) -> Self:
        if len(parts_of(self.workload.name)) > 1:
            raise ValueError(f"{self.workload.name} is several workloads: write each as a load of its own, below loads")
        if not find_workload(self.workload.name).users.deck:
            raise ValueError(
                f"{self.workload.name} has no transactions that users could execute: write `queries: {{run: power}}` "
                "in place of users, warm_up and measure"
            )
        self.refuse_unknown_transactions(self.workload.name, self.slo)
        self.refuse_search(self.slo)
        self.refuse_without()
        if self.search:
            self.refuse_curve("a search finds a ceiling of one size of memory")
        if len(self.counts) > 1:
            self.refuse_curve("there are several numbers of users, each with another curve")
        return self

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

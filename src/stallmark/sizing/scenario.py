"""A scenario that sizes a candidate for a profile: its I/O is replayed, and Stallmark's loads stand in for its
database.

loads:                                           # how large, and the most transactions or queries of each at once
  bank: {workload: bank, scale: {branches: 200}, users: 24}
  brokerage: {workload: brokerage, scale: {customers: 5000, days: 2}, users: 24}
  queries: {workload: warehouse, scale: {factor: 1}, streams: 4}
search: {of: load, from: 0.25, to: 16}           # multiples of what the profile recorded
replay: {size: 16GiB}
candidate: {name: new array, memory: 64GiB, cost: 42000, watts: 900, rack_units: 4}

The rates of the loads are found while it runs: those at which they do what the profile's server did.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import Field

from stallmark.experiment.estimate import WRITE_BYTES_PER_S, Estimate, estimate
from stallmark.quantities import PoolSize, Seconds, Size, write_duration
from stallmark.scenarios import Section
from stallmark.scenarios.load import Load, RawLoad, StreamsLoad, UsersLoad
from stallmark.scenarios.model import AnyScenario
from stallmark.scenarios.storage import FileSize
from stallmark.scenarios.timed import LoadsScenario, Searched, UntilSteady
from stallmark.scenarios.variant import Variant
from stallmark.sizing.manifest import Candidate
from stallmark.stats.thresholds import CEILING_LONGEST
from stallmark.transactions import find_workload

CALIBRATING_USERS = 8
"""Enough to keep storage busy, and few enough not to wait for each other's locks."""
CALIBRATING_STREAMS = 2
"""One reads while the other computes."""
LEAST_RATE = 0.1
"""Transactions per second of users where queries alone do what the profile did: a run is one of users."""
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Folder = Annotated[str, Field(min_length=1)]


class ReplayChoice(Section):
    """The I/O of the profile's busiest windows on files of its own, one for data and one for the log."""

    size: FileSize = 16 * 2**30
    """The size of the file that is read and written in place of the data; more than the array's memory, or its memory
    answers."""
    log_size: FileSize = 2**30
    """The size of the file that is written in place of the log."""
    folder: Folder | None = None
    """The folder of the data's file; by default that of the embedded server's data."""
    log_folder: Folder | None = None
    """The folder of the log's file; by default that of the embedded server's log."""
    window: Annotated[Seconds, Field(ge=30)] = 900.0
    """The length of a busy window of the profile."""
    play: Annotated[Seconds, Field(ge=5)] = 900.0
    """The time in which a window is played at each level. Less than `window` makes bursts shorter than they were."""


class CandidateChoice(Section):
    """The candidate as its owner describes it."""

    name: Annotated[str, Field(min_length=1, max_length=40)] = "this server"
    """The candidate's name in the answer."""
    memory: Size | None = None
    """The buffer pool that it will have; by default that of the profile's server."""
    cost: Positive | None = None
    """Its price, in any currency that is the same for all candidates."""
    watts: Positive | None = None
    """The power that it draws."""
    rack_units: Positive | None = None
    """The height that it takes in a rack."""

    def to_record(self) -> Candidate:
        """Return the candidate for the manifest."""
        facts = self.model_dump(exclude={"memory"})
        return Candidate(memory_bytes=self.memory, **facts)


class SizingScenario(LoadsScenario):
    """A candidate gets the load of a profile, then multiples of that load, until the service level breaks."""

    heading = "New hardware for the load of a profile"
    replay: ReplayChoice = ReplayChoice()
    """The profile's I/O as raw load."""
    candidate: CandidateChoice = CandidateChoice()
    """The candidate, for the answer."""

    @classmethod
    def is_meant(cls, document: Mapping[str, Any]) -> bool:
        """Return True for loads with a key that no other scenario of several loads has."""
        added = cls.model_fields.keys() - LoadsScenario.model_fields.keys()
        return "loads" in document and not added.isdisjoint(document)

    def _search_mistakes(self) -> Iterator[str]:
        if self.search is None or self.search.of != "load":
            yield "a sizing tries multiples of the load: write search: {of: load, from: 0.25, to: 16}"
        if self.slo is None:
            yield "search needs a service level: add slo, such as oltp or {read: 10ms}"
        if len(self.variants) > 1:
            yield "a sizing is of one candidate: leave one variant, and run it again on the other hardware"
        if left_out := self.variants[0].without:
            yield f"a sizing runs all of its loads: leave {left_out[0]} out of loads, in place of without"
        if self.cells or self.alone:
            yield "a sizing makes the steps: leave out cells and alone"
        for name, load in self.loads.items():
            if isinstance(load, RawLoad):
                yield f"{name} has no rate that could be found: leave loads of users and streams of queries"
                continue
            if isinstance(load, UsersLoad) and (own := find_workload(load.workload).background.rates):
                yield (
                    f"{next(iter(own)).name} of {name} has a rate of its own, and the sizing finds that of the load: "
                    "write a weight"
                )
            several = len(load.streams if isinstance(load, StreamsLoad) else load.counts) > 1
            paced = isinstance(load, UsersLoad) and load.think_time
            if load.arrivals != "closed" or several or paced:
                which = "streams and timeout" if isinstance(load, StreamsLoad) else "users and mix"
                yield f"the rate of {name} is found by the sizing: leave workload, scale, {which}"
        yield from self.curve_mistakes("a sizing is of one size of memory")

    def searched_of(self, variant: Variant) -> Searched | None:
        assert self.search and self.slo
        return Searched(self.search, None, self.slo, dict.fromkeys(self.loads, 1.0))

    def calibration(self, pool: PoolSize | None) -> LoadsScenario:
        """Return the scenario that measures the cost of a transaction: each load runs alone, in a closed loop."""
        few = {name: _few(load) for name, load in self.loads.items()}
        title = "What a transaction or a query of each load costs"
        return self._with_changes(few, pool, name="calibration", title=title, alone="only", **self._measurement_times)

    def runnable_rates(self, rates: Mapping[str, float]) -> dict[str, float]:
        """Return rates at which the loads can run: if all users would be idle, the first load of users gets a low
        rate."""
        users = [name for name in rates if name not in self.queries]
        return dict(rates) | ({} if any(rates[name] > 0 for name in users) else {users[0]: LEAST_RATE})

    def trial(self, rates: Mapping[str, float], pool: PoolSize | None) -> LoadsScenario:
        """Return the scenario with the loads at these rates per second; a load without a rate is idle."""
        return self._with_rates(
            rates, pool, name="trial", title="The stand-in at the load of the profile", **self._measurement_times
        )

    def ceiling(self, rates: Mapping[str, float], pool: PoolSize | None) -> LoadsScenario:
        """Return the scenario that searches the highest sustained multiple of the rates."""
        assert self.search
        search = self.search.model_dump(mode="json", by_alias=True)
        return self._with_rates(
            rates, pool, name="ceiling", title="The stand-in at multiples of the load", search=search
        )

    @property
    def _measurement_times(self) -> dict[str, Any]:
        """Return the times for measuring costs: the longest time of an undecided level, after a warm-up of the same
        length.

        A pool that starts clean writes no pages until it needs the space of changed ones.
        """
        longer_s = CEILING_LONGEST * self.measure
        if isinstance(self.warm_up, UntilSteady):
            least_s = max(self.warm_up.at_least, longer_s)
            most_s = self.warm_up.at_most + least_s
            warm_up: Any = {"until": "steady", "at_least": write_duration(least_s), "at_most": write_duration(most_s)}
        else:
            warm_up = write_duration(max(self.warm_up, longer_s))
        return {"measure": write_duration(longer_s), "warm_up": warm_up}

    @property
    def queries(self) -> list[str]:
        """Return the loads of queries."""
        return [name for name, load in self.loads.items() if isinstance(load, StreamsLoad)]

    def _with_rates(self, rates: Mapping[str, float], pool: PoolSize | None, **keys: Any) -> LoadsScenario:
        arrivals = {name: {"arrivals": {"kind": "poisson", "rate": rate}} for name, rate in rates.items() if rate > 0}
        resting = [name for name in self.loads if name not in arrivals]
        return self._with_changes(arrivals, pool, resting, **keys)

    def _with_changes(
        self,
        changes: Mapping[str, dict[str, Any]],
        pool: PoolSize | None,
        resting: list[str] | None = None,
        **keys: Any,
    ) -> LoadsScenario:
        document = self.model_dump(mode="json", exclude={"replay", "candidate", "search"})
        for name, changed in changes.items():
            document["loads"][name] |= changed
        document["variants"][0]["without"] = resting or []
        if pool is not None:
            document["buffer_pool"] = str(pool)
        return LoadsScenario.model_validate(document | {"answers": ""} | keys)


def _few(load: Load) -> dict[str, int]:
    """Return the size of a load while its cost is measured."""
    if isinstance(load, StreamsLoad):
        return {"streams": min(*load.streams, CALIBRATING_STREAMS)}
    assert isinstance(load, UsersLoad)
    return {"users": min(load.most_users, CALIBRATING_USERS)}


# The time that a sizing usually takes.


def estimate_sizing(
    scenario: AnyScenario,
    dialect: str = "postgresql",
    *,
    to_build: float = 1.0,
    to_copy: bool = True,
    pace: float = 1.0,
    windows: int = 1,
) -> Estimate | None:
    """Estimate a sizing: the replay of the `windows`, the loads alone, two trials, and the ceiling. Return None for
    other scenarios."""
    if not isinstance(scenario, SizingScenario):
        return None
    assert scenario.search
    rate = dict.fromkeys(scenario.loads, 1.0)
    parts = [scenario.calibration(None), *2 * [scenario.trial(rate, None)], scenario.ceiling(rate, None)]
    built = estimate(parts[0], dialect, to_build=to_build, to_copy=to_copy, pace=pace).build_s
    runs = [run for part in parts for run in estimate(part, dialect, to_build=0.0, to_copy=False, pace=pace).runs_s]
    choice = scenario.replay
    files_s = pace * (choice.size + choice.log_size) / WRITE_BYTES_PER_S
    played_s = scenario.search.spec().usual_levels * windows * min(choice.play, choice.window)
    return Estimate(build_s=built, runs_s=(files_s + played_s, *runs))

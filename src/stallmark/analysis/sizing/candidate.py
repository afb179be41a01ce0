"""The answer for one candidate: how much of the need it carries, by the replay, by the stand-in, and by both."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from stallmark.analysis.finding import Finding, caution, info
from stallmark.analysis.profile.rates import MORE
from stallmark.analysis.sizing.kinds import SizingKind
from stallmark.analysis.sizing.need import Need
from stallmark.analysis.sizing.reach import Method, Reach, replay_reach, stand_in_reach
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.record.sizing import Demand, Peak, Sizing

Standing = Literal["carries", "carries_not", "open", "unknown"]


@dataclass(frozen=True)
class CandidateAnswer:
    """A candidate under a need. Headroom is what it reaches ÷ the need: `low` and `high` are its ends by all methods
    together, `middle` is the lowest ceiling of a method."""

    name: str
    folder: Path
    sizing: Sizing
    need: Need
    service_level: ServiceLevelObjective
    replay: Reach | None
    stand_in: Reach | None

    @property
    def reaches(self) -> list[Reach]:
        return [one for one in (self.replay, self.stand_in) if one is not None and one.known]

    @property
    def without_answer(self) -> list[Method]:
        """Return the methods that were tried and came to no answer."""
        return [one.method for one in (self.replay, self.stand_in) if one is not None and not one.known]

    @property
    def deciding(self) -> Reach | None:
        """Return the lower reach."""
        return min(self.reaches, key=lambda one: (one.low, one.high or float("inf")), default=None)

    @property
    def low(self) -> float | None:
        return self.deciding.low / self.need.multiple if self.deciding else None

    @property
    def high(self) -> float | None:
        return min((one.high / self.need.multiple for one in self.reaches if one.high is not None), default=None)

    @property
    def middle(self) -> float | None:
        if self.deciding is None or self.deciding.middle is None:
            return None
        # Where levels of one method lie wide apart, its own middle may be above the level that broke by the other.
        return min(one.middle for one in self.reaches if one.middle is not None) / self.need.multiple

    @property
    def ends(self) -> Finding | None:
        """Return what ends first: at the lowest level that broke by any method."""
        broke = [one for one in self.reaches if one.high is not None]
        return min(broke, key=lambda one: (one.high, one is not self.deciding)).ends if broke else None

    @property
    def untried(self) -> bool:
        """Return whether no load was tried above the highest that was carried."""
        levels = [point.level for one in (self.replay, self.stand_in) if one is not None for point in one.points]
        return self.deciding is not None and max(levels, default=0.0) <= self.deciding.low

    @property
    def standing(self) -> Standing:
        if self.low is None:
            return "unknown"
        if self.high is not None and self.high <= 1:
            return "carries_not"
        whole = self.sizing.status == "complete" and not self.without_answer
        played = self.sizing.demand.peaks is not None and not unplayed(self.sizing.demand)
        return "carries" if self.low >= 1 and whole and played else "open"

    @property
    def emulated(self) -> bool:
        """Tell whether any of its storage was emulated, that of the data or that of the log."""
        replay, devices = self.sizing.replay, self.sizing.devices
        emulated = devices.of("data").emulated_array or devices.of("wal").emulated_array
        return bool(replay and replay.emulated) or emulated is not None

    @property
    def memory_bytes(self) -> float | None:
        """Return the buffer pool that it is to have: where nobody said so, as large as today's."""
        return self.sizing.candidate.memory_bytes or self.sizing.demand.pool_bytes

    @property
    def per_s(self) -> float | None:
        """Return the transactions per second of the profile that it was seen to carry; None where that is not known."""
        transactions = self.sizing.demand.transactions
        return self.deciding.low * transactions if self.deciding and self.deciding.low and transactions else None

    def per_s_of(self, unit: float | None) -> float | None:
        """Return these transactions per unit of cost, watts or height."""
        return self.per_s / unit if self.per_s is not None and unit else None


def unplayed(demand: Demand) -> list[Peak]:
    """Return the peaks of the profile that no window which was played comes near to."""
    return [one for one in demand.peaks or () if one.per_s > MORE * one.played]


def answer_of(
    folder: Path, sizing: Sizing, name: str, need: Need, other: ServiceLevelObjective | None
) -> CandidateAnswer:
    """Return the answer for a candidate; under another service level than it was measured with, where one is given."""
    read_ms = other.read_ms if other else None
    ceiling = sizing.stand_in.ceiling if sizing.stand_in else None
    return CandidateAnswer(
        name,
        folder,
        sizing,
        need,
        other or sizing.service_level,
        replay_reach(sizing.replay, read_ms) if sizing.replay and sizing.replay.levels else None,
        stand_in_reach(folder / ceiling, sizing.demand, read_ms) if ceiling else None,
    )


def finding_of(found: CandidateAnswer) -> Finding:
    """Return the answer as a finding."""
    span = {"headroom": found.middle, "low": found.low, "high": found.high}
    facts: dict[str, Any] = {"candidate": found.name, **span, "ends": found.ends}
    match found.standing:
        case "carries":
            return info(SizingKind.CARRIES, **facts, untried=found.untried)
        case "carries_not":
            return caution(SizingKind.CARRIES_NOT, **facts)
        case "open":
            demand = found.sizing.demand
            facts |= {"whole": found.sizing.status == "complete", "without": found.without_answer}
            facts |= {"unplayed": [one.measure for one in unplayed(demand)], "peaks_known": demand.peaks is not None}
            return caution(SizingKind.OPEN, **facts, untried=found.untried)
        case "unknown":
            return caution(SizingKind.UNKNOWN, candidate=found.name)

"""The timeline of one run: steps on a fixed timeline, known to every process before the first user starts."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

# Servers hand in their statistics up to a second late (PGSTAT_MIN_INTERVAL): the load goes on meanwhile.
COOL_DOWN_S = 2.0
BETWEEN_LEVELS_S = 3.0
"""Between two levels of a search: the time in which all executors and the server report the one that has ended."""


@dataclass(frozen=True)
class Step:
    """A step of a timeline, in seconds from the run's start. Users ramp up from `begin_s` for `ramp_s`; the warm-up
    lasts until `measure_s`; measured is `measure_s` to `end_s`. `users` are those of all loads together."""

    name: str
    users: int
    begin_s: float
    ramp_s: float
    measure_s: float
    end_s: float


@dataclass(frozen=True)
class WarmUpLimits:
    """The shortest and the longest time after its ramp, in seconds, that a step waits for a steady state before it
    is measured."""

    at_least_s: float
    at_most_s: float


@dataclass(frozen=True)
class Timeline:
    """The timeline of one run, which all of its loads follow."""

    steps: tuple[Step, ...]
    warm_up_limits: WarmUpLimits | None = None
    """Limits where steps wait for a steady state. Such steps are planned as if it came at the last moment."""
    reserve_s: float = 0.0
    """The longest time that a search may need for further steps; 0 where all steps are known."""

    def measuring_from(self, index: int, second: float) -> "Timeline":
        """Return a timeline whose step number `index` is measured from `second` on, as long as planned; later steps
        move with it."""
        earlier_s = self.steps[index].measure_s - second
        current = self.steps[index]
        moved = replace(current, measure_s=second, end_s=current.end_s - earlier_s)
        later = (
            replace(
                step,
                begin_s=step.begin_s - earlier_s,
                measure_s=step.measure_s - earlier_s,
                end_s=step.end_s - earlier_s,
            )
            for step in self.steps[index + 1 :]
        )
        return replace(self, steps=(*self.steps[:index], moved, *later))

    def ending(self, second: float, measured_from: float | None = None) -> "Timeline":
        """Return a timeline whose last step ends then, later or earlier than planned."""
        last = self.steps[-1]
        measure_s = last.measure_s if measured_from is None else measured_from
        return self._with(replace(last, measure_s=measure_s, end_s=second), self.steps[:-1])

    def followed_by(self, step: Step) -> "Timeline":
        """Return a timeline with one more step, out of the time that was reserved for it."""
        return self._with(step, self.steps)

    def over(self) -> "Timeline":
        """Return a timeline to which no step is added any more."""
        return replace(self, reserve_s=0.0)

    def _with(self, last: Step, before: tuple[Step, ...]) -> "Timeline":
        left_s = self.end_s - COOL_DOWN_S - last.end_s
        return replace(self, steps=(*before, last), reserve_s=max(2 * BETWEEN_LEVELS_S, left_s))

    @property
    def end_s(self) -> float:
        """Return when users stop at the latest: COOL_DOWN_S after the last step, so that stopping does not disturb its
        end."""
        return self.steps[-1].end_s + self.reserve_s + COOL_DOWN_S

    def index_at(self, second: float) -> int:
        """Return the place of the step in force; of the last one after the end."""
        return next((place for place, step in enumerate(self.steps) if second < step.end_s), len(self.steps) - 1)

    def step_at(self, second: float) -> Step:
        """Return the step in force; the last one after the end."""
        return self.steps[self.index_at(second)]


def consecutive_steps(users: Iterable[int], *, ramp_s: float, warm_up_s: float, measure_s: float) -> tuple[Step, ...]:
    """Return steps of equal length one after the other; each ramps from the users of the one before.

    A number of users that comes again gets another step name, because its history differs.
    """
    steps: list[Step] = []
    for count in users:
        begin = steps[-1].end_s if steps else 0.0
        measure = begin + ramp_s + warm_up_s
        before = sum(step.users == count for step in steps)
        name = f"{count} users" + (f" ({before + 1})" if before else "")
        steps.append(Step(name, count, begin, ramp_s, measure, measure + measure_s))
    return tuple(steps)

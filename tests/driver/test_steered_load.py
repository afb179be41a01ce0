"""A steered load in simulated time: what executors and the server tell late becomes windows of one rate."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from stallmark.driver.rows import OwnIORow, Rows, TransactionRow
from stallmark.driver.steered_load import IOSample, SteeredLoad, SteeringPlan, first_rate
from stallmark.driver.timeline import Step
from stallmark.record.histogram import EMPTY
from stallmark.record.manifest.workload import Steered

PLAN = SteeringPlan("mail", frozenset({0}), wanted=0.12, mailboxes=2_000, limit_ms=20)  # 240 I/Os per second
STEP = Step("20 users", 20, begin_s=0, ramp_s=5, measure_s=600, end_s=660)


@dataclass
class World:
    """Users and a server: so many reads and writes for each operation, reads that take so long. A timer reads 30 pages
    four times a second, of which three times are sampled."""

    reads: float = 5.0
    writes: float = 3.0
    read_ms: float | None = 8.0
    tells_own_io: bool = True
    steps: tuple[Step, ...] = (STEP,)
    plan: SteeringPlan = PLAN
    rates: list[tuple[float, float]] = field(default_factory=list)
    ended: list[tuple[int, Steered]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.now = 0.0
        self.rate = first_rate(self.plan.goal.iops)
        self.total = [0.0, 0.0, 0.0]
        self.owed = 0.0
        self.load = SteeredLoad(self.plan, self.take, of_users=["read", "write"], of_timers=["scan"])

    def take(self, rate: float) -> None:
        self.rate = rate
        self.rates.append((self.now, rate))

    def run(self, until: float) -> None:
        for second in self._seconds(until):
            step = next(index for index, step in enumerate(self.steps) if second < step.end_s)
            if ended := self.load.check(step, self.steps[step], self.now):
                self.ended.append((step, ended))

    def _seconds(self, until: float) -> Iterator[int]:
        while self.now < until:
            second = int(self.now)
            self.owed += self.rate
            done, self.owed = int(self.owed), self.owed % 1
            rows = [row(second, "read", done), row(second, "scan", 4), row(second, "read", 99, load="bank")]
            scans = OwnIORow(second, "mail", "scan", sampled=3, reads=90, read_bytes=0, hits=0, read_us=None, writes=0)
            self.load.count(Rows(transactions=rows, transaction_io=[scans] if self.tells_own_io else []))
            self.total[0] += done * self.reads + 120
            self.total[1] += done * self.writes
            self.total[2] += (done * self.reads + 120) * (self.read_ms or 0.0)
            self.now += 1
            reads, writes, ms = self.total
            self.load.count_io(IOSample(self.now, reads, writes, None if self.read_ms is None else ms))
            yield second


def row(second: int, name: str, committed: int, load: str = "mail") -> TransactionRow:
    return TransactionRow(second, load, name, committed, 0, 0, 0, 0, 0, EMPTY, EMPTY)


def test_the_rate_becomes_that_of_the_goal_and_stays_while_it_is_measured() -> None:
    world = World()
    world.run(655)
    [(index, ended)] = world.ended
    assert (index, ended.outcome) == (0, "reached")
    assert ended.rate == pytest.approx(30, rel=0.03) and ended.iops == pytest.approx(240, rel=0.03)
    assert ended.read_ms == pytest.approx(8) and ended.within is not None and ended.within < 0.03
    assert world.load.settled(0)
    assert all(when < 600 for when, _ in world.rates) and world.rate == ended.rate


def test_what_a_timer_reads_is_counted_where_its_session_does_not_tell_it() -> None:
    world = World(tells_own_io=False)
    world.run(655)
    [(_, ended)] = world.ended
    assert ended.rate == pytest.approx(15, rel=0.05) and ended.iops == pytest.approx(240, rel=0.05)


def test_nothing_is_steered_during_the_ramp() -> None:
    world = World()
    world.run(4)
    assert world.rates == [] and not world.load.settled(0)


def test_windows_are_of_one_rate() -> None:
    """Counts that come late would otherwise make each change look larger, or smaller, than it is."""
    world = World()
    world.run(300)
    for window in world.load._windows:
        assert window.done == pytest.approx(window.rate * window.seconds, abs=1)
        assert window.ios == pytest.approx(8 * window.done, rel=0.05)


def test_every_step_is_steered_from_the_rate_of_the_one_before() -> None:
    later = Step("40 users", 40, begin_s=660, ramp_s=5, measure_s=960, end_s=1_020)
    world = World(steps=(STEP, later), plan=replace(PLAN, steps=frozenset({0, 1})))
    world.run(1_000)
    assert [index for index, _ in world.ended] == [0, 1]
    assert min(rate for when, rate in world.rates if when > 660) > 25


def test_a_step_in_which_the_load_rests_is_not_waited_for() -> None:
    load = SteeredLoad(replace(PLAN, steps=frozenset({1})), lambda rate: None, of_users=[])
    assert load.settled(0) and not load.settled(1)
    assert load.check(0, STEP, 700.0) is None


@pytest.mark.parametrize("read_ms", [40.0, None])
def test_slow_reads_break_the_limit_and_untimed_ones_do_not(read_ms: float | None) -> None:
    world = World(read_ms=read_ms)
    world.run(655)
    [(_, ended)] = world.ended
    assert ended.outcome == ("reached" if read_ms is None else "limit") and ended.read_ms == read_ms


def test_what_is_not_certain_in_time_is_said() -> None:
    world = World(steps=(Step("20 users", 20, begin_s=0, ramp_s=5, measure_s=35, end_s=95),))
    world.run(90)
    [(_, ended)] = world.ended
    assert ended.outcome == "time" and 0 < ended.windows < 10


def test_without_samples_of_the_server_nothing_is_known() -> None:
    load = SteeredLoad(PLAN, lambda rate: None, of_users=[])
    for second in range(601):
        ended = load.check(0, STEP, second)
    assert ended and (ended.outcome, ended.windows, ended.iops, ended.read_ms) == ("time", 0, None, None)


def test_counters_that_begin_anew_make_no_window() -> None:
    world = World()
    world.run(100)
    world.total = [0.0, 0.0, 0.0]
    world.run(300)
    assert all(window.ios > 0 for window in world.load._windows)

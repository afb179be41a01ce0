"""The search for a ceiling, against simulated servers whose ceiling is known."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallmark.stats.ceiling_search import Ceiling, LevelResult, Next, Outcome, SearchSpec, Verdict, Why, search

pytestmark = pytest.mark.thorough

ASKED = SearchSpec(1, 400, 0.05, whole=True)
OPEN = SearchSpec(5, 3000, 0.05, whole=False)
SIMULATIONS = 1_000


@dataclass
class Server:
    """A server with a ceiling. `looks` counts the levels it was given, `overloaded` says that the last one broke it."""

    ceiling: float
    rng: random.Random
    looks: int = 0
    overloaded: bool = False


def steady(server: Server, level: float) -> float:
    return server.ceiling


def noisy(server: Server, level: float) -> float:
    """Every look finds another ceiling."""
    return server.ceiling * (1 + server.rng.gauss(0, 0.02))


def falling(server: Server, level: float) -> float:
    """A drift: the database grows, and each level leaves less than the one before."""
    return server.ceiling * (1 - 0.003 * server.looks)


def warming(server: Server, level: float) -> float:
    """A cache that is cold at first: half of the ceiling is missing."""
    return server.ceiling * (1 - 0.5 * math.exp(-server.looks / 2))


def slow_to_recover(server: Server, level: float) -> float:
    """Hysteresis: once broken it carries 12 % less, until it gets much less to do."""
    if server.overloaded and level <= 0.75 * server.ceiling:
        server.overloaded = False
    return server.ceiling * (0.88 if server.overloaded else 1)


def disturbed(server: Server, level: float) -> float:
    """One look in thirty is wrong, whatever the level: other work breaks it, or a checkpoint is missing from it."""
    if server.rng.random() < 1 / 30:
        return 0.0 if level <= server.ceiling else math.inf
    return server.ceiling


def found(
    asked: SearchSpec, server: Server, now: Callable[[Server, float], float]
) -> tuple[Ceiling, list[LevelResult]]:
    seen: list[LevelResult] = []
    while isinstance(step := search(asked, seen), Next):
        held = step.level <= now(server, step.level)
        server.overloaded = server.overloaded or not held
        server.looks += 1
        seen.append(LevelResult(step.level, Verdict.HELD if held else Verdict.BROKE))
    return step, seen


def right(answer: Ceiling, truth: float, tolerance: float) -> bool:
    """The ceiling lies between the two levels, or their middle is within the tolerance of it."""
    if answer.holds is None or answer.breaks is None:
        return False
    middle = math.sqrt(answer.holds * answer.breaks)
    return answer.holds <= truth < answer.breaks or abs(middle / truth - 1) <= tolerance


@pytest.mark.parametrize("asked", [ASKED, OPEN], ids=["users", "rate"])
@pytest.mark.parametrize(
    ("now", "truth"),
    [
        (steady, lambda server: server.ceiling),
        (noisy, lambda server: server.ceiling),
        (falling, lambda server: server.ceiling * (1 - 0.003 * (server.looks - 1))),
        (warming, lambda server: server.ceiling),
        (slow_to_recover, lambda server: 0.88 * server.ceiling),
        (disturbed, lambda server: server.ceiling),
    ],
    ids=lambda one: one.__name__ if one.__name__ != "<lambda>" else "",
)
def test_right_within_the_tolerance_in_95_of_100(asked, now, truth):
    """A cliff and a gentle slope are one to the search: it sees verdicts alone."""
    correct = 0
    for seed in range(SIMULATIONS):
        rng = random.Random(seed)
        server = Server(math.exp(rng.uniform(math.log(10 * asked.low), math.log(0.9 * asked.high))), rng)
        answer, seen = found(asked, server, now)
        assert len(seen) <= asked.most_levels
        correct += right(answer, truth(server), asked.tolerance)
    assert correct >= 0.95 * SIMULATIONS


def test_the_usual_number_of_levels_is_what_most_searches_take():
    looks = []
    for seed in range(SIMULATIONS):
        rng = random.Random(seed)
        server = Server(math.exp(rng.uniform(math.log(10), math.log(360))), rng)
        looks.append(len(found(ASKED, server, noisy)[1]))
    assert sorted(looks)[SIMULATIONS // 2] <= ASKED.usual_levels


def test_a_server_that_carries_all_is_said_to_carry_at_least_that():
    answer, seen = found(ASKED, Server(1e9, random.Random(1)), steady)
    assert answer == Ceiling(Outcome.AT_LEAST, 400, None)
    assert [one.level for one in seen] == [1, 2, 4, 8, 16, 32, 64, 128, 256, 400, 400]


def test_a_server_that_carries_nothing_is_seen_twice():
    answer, seen = found(SearchSpec(8, 64, 0.05, True), Server(3, random.Random(1)), steady)
    assert answer == Ceiling(Outcome.NONE, None, 8)
    assert [one.level for one in seen] == [8, 8]


def test_one_level_alone_is_tried_and_confirmed():
    assert found(SearchSpec(50, 50, 0.05, True), Server(60, random.Random(1)), steady)[0] == Ceiling(
        Outcome.AT_LEAST, 50, None
    )


def test_a_ceiling_that_does_not_hold_again_goes_down():
    held, broke = Verdict.HELD, Verdict.BROKE
    seen = [
        LevelResult(10, held),
        LevelResult(20, broke),
        LevelResult(14, held),
        LevelResult(17, broke),
        LevelResult(15, held),
        LevelResult(16, broke),
    ]
    asked = SearchSpec(10, 40, 0.05, True)
    assert search(asked, seen) == Next(16, Why.ABOVE)
    seen += [LevelResult(16, broke)]
    assert search(asked, seen) == Next(15, Why.CEILING)
    seen += [LevelResult(15, broke)]
    assert search(asked, seen) == Next(15, Why.BALANCE)
    seen += [LevelResult(15, broke)]
    assert search(asked, seen) == Next(15, Why.ABOVE)  # it is the level above, now
    seen += [LevelResult(15, broke)]
    assert search(asked, seen) == Next(14, Why.CEILING)
    assert search(asked, [*seen, LevelResult(14, held)]) == Ceiling(Outcome.FOUND, 14, 15)


def test_an_undecided_level_is_not_carried():
    seen = [
        LevelResult(4, Verdict.HELD),
        LevelResult(5, Verdict.UNDECIDED),
        LevelResult(5, Verdict.UNDECIDED),
        LevelResult(4, Verdict.HELD),
    ]
    assert search(SearchSpec(4, 5, 0.05, True), seen) == Ceiling(Outcome.FOUND, 4, 5)


def test_a_search_that_goes_round_ends_unconfirmed():
    """A ceiling that depends on what came before may have none of its own: then the most levels are the end."""
    ends = {}
    for seed in range(SIMULATIONS):
        rng = random.Random(seed)
        server = Server(math.exp(rng.uniform(math.log(10), math.log(360))), rng)
        answer, seen = found(ASKED, server, slow_to_recover)
        ends.setdefault(answer.outcome, set()).add(len(seen))
    assert ends[Outcome.UNCONFIRMED] == {ASKED.most_levels}
    assert max(ends[Outcome.FOUND]) <= ASKED.most_levels


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 50),
    st.integers(1, 1000),
    st.floats(0.01, 0.5),
    st.booleans(),
    st.lists(st.sampled_from(list(Verdict)), min_size=80, max_size=80),
)
def test_levels_stay_within_what_was_asked(low, wider, tolerance, whole, verdicts):
    asked = SearchSpec(low, low + wider, tolerance, whole)
    seen: list[LevelResult] = []
    for verdict in verdicts:
        step = search(asked, seen)
        if isinstance(step, Ceiling):
            assert step.holds is None or step.breaks is None or step.holds < step.breaks
            return
        assert asked.low <= step.level <= asked.high
        assert not whole or step.level == int(step.level)
        seen.append(LevelResult(step.level, verdict))
    assert len(seen) <= asked.most_levels

"""Each kind of finding on a sizing, beside one in which its sentence would be false, and is not told."""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st
from support.findings import facts_of, of_kind
from support.profiles import DATA, LOG, write_made_profile
from support.sizings import OLTP, a_demand, a_replay, by_percentile, write_sizing_of, write_stand_in
from support.wording import kinds_in

from stallmark.errors import StallmarkError
from stallmark.sizing.candidate import CandidateAnswer, Need, answer_finding
from stallmark.sizing.demand import TOGETHER, demand_of
from stallmark.sizing.manifest import Beyond, Peak, Replay, WindowSeen, read_sizing, write_sizing
from stallmark.sizing.reach import Reach, SizingKind, replay_reach, stand_in_reach
from stallmark.sizing.summary import SizingSummary, size, summarise_candidate

pytestmark = pytest.mark.thorough

READS_10MS = OLTP.changed(read_ms=10)


class Given(NamedTuple):
    """A profile of two hours and a half with a busy quarter of an hour, and folders that are not there yet."""

    profile: Path
    folder: Callable[[], Path]


Case = Callable[[Given], SizingSummary]


def busy(n: int) -> dict[str, dict[str, Any]]:
    factor = 3 if 100 <= n < 160 else 1
    rows = {"data": DATA, "log": LOG}
    return {
        name: {column: value * (1 if column == "size_bytes" else factor) for column, value in row.items()}
        for name, row in rows.items()
    }


@pytest.fixture(scope="module")
def given(tmp_path_factory) -> Given:
    root, numbers = tmp_path_factory.mktemp("sizings"), count()
    return Given(write_made_profile(root / "shop", 600, file_io=busy), lambda: root / str(next(numbers)))


def alone(demand: Mapping[str, Any] | None = None, stand_in_facts: Mapping[str, Any] | None = None, **options) -> Case:
    """One candidate by itself. `stand_in_facts` are changes to what its stand-in noted."""

    def made(given: Given) -> SizingSummary:
        folder = write_sizing_of(given.folder(), a_demand(**(demand or {})), **options)
        if stand_in_facts:
            sizing = read_sizing(folder)
            assert sizing.stand_in
            write_sizing(folder, sizing.changed(stand_in=sizing.stand_in.changed(**stand_in_facts)))
        return summarise_candidate(folder)

    return made


def sized(*candidates: Mapping[str, Any], today: Mapping[str, Any] | None = None, **how) -> Case:
    """Candidates for the profile, beside the hardware of `today`."""

    def made(given: Given) -> SizingSummary:
        folders = [write_sizing_of(given.folder(), given.profile, **one) for one in candidates or ({},)]
        old = None if today is None else write_sizing_of(given.folder(), given.profile, "old", **today)
        return size(given.profile, folders, today=old, **how)

    return made


def with_streams(replay: Replay, **facts) -> Replay:
    """The replay with changes to all of its streams."""
    levels = [one.changed(streams=[stream.changed(**facts) for stream in one.streams]) for one in replay.levels]
    return replay.changed(levels=tuple(levels))


def peak(times: float) -> dict[str, Any]:
    """A demand with one peak, of so many times the most that was played."""
    return {"peaks": (Peak(measure="read_bytes_per_s", begin=0.0, per_s=times * 8e6, played=8e6),)}


def beyond(share: float) -> dict[str, Any]:
    return {"beyond": Beyond(begin=0.0, measure="writes_per_s", share=share)}


def windows(number: int) -> dict[str, Any]:
    [busiest] = a_demand().windows
    second = busiest.changed(because="read_bytes_per_s", begin=busiest.begin + 3600)
    return {"windows": (busiest, second)[:number]}


def queries(ended: int, waited: float) -> dict[str, Any]:
    return {
        "stand_in_facts": {"rates": {"reports": 0.1}, "queries": {"reports": ended}, "waited": {"reports": waited}},
        "stand_in": ENDS,
    }


ENDS = (1.25, 1.38)
ENDLESS = a_replay((4.0, None), outcome="at_least")
MATCHED = {"reads": (1000.0, 1000.0)}
CASES: dict[SizingKind, tuple[Case, Case]] = {
    SizingKind.CARRIES: (alone(), alone(replay=(0.5, 0.6))),
    SizingKind.CARRIES_NOT: (alone(replay=(0.5, 0.6)), alone()),
    SizingKind.OPEN: (alone(status="incomplete"), alone()),
    SizingKind.UNKNOWN: (alone(replay=None), alone()),
    SizingKind.NEED: (sized(percentile="p90"), sized(percentile="p99")),  # which too few minutes tell
    SizingKind.NEED_BY_WINDOW: (sized(percentile="p99"), sized(percentile="p90")),
    SizingKind.NEED_BELOW_BUSIEST: (sized(percentile="p90"), sized(percentile="max")),
    SizingKind.METHODS: (alone(stand_in=ENDS), alone()),
    SizingKind.ENDS: (alone(), alone(replay=ENDLESS)),
    SizingKind.REPLAY_ENDS: (alone(), alone(replay=ENDLESS)),
    SizingKind.STAND_IN_ENDS: (alone(stand_in=ENDS), alone(stand_in=(4.0, None))),
    SizingKind.MEMORY: (alone(), alone({"pool_bytes": None})),
    SizingKind.CHEAPEST: (sized({"cost": 2.0}, {"cost": 1.0}), sized({"cost": 2.0}, {"cost": None})),
    SizingKind.TODAY: (sized(today={}), sized(today={"replay": ENDLESS})),
    SizingKind.TODAY_OPEN: (sized(today={"replay": ENDLESS}), sized(today={})),
    SizingKind.TODAY_BELOW: (sized(today={"replay": (0.8, 0.9)}), sized(today={"replay": (1.0, 1.1)})),
    SizingKind.SLOW_TODAY: (alone({"read_ms": 24.0}), alone({"read_ms": 6.0})),
    SizingKind.UNFINISHED: (alone(status="incomplete"), alone()),
    SizingKind.UNCONFIRMED: (alone(replay=a_replay(outcome="unconfirmed")), alone()),
    SizingKind.GAP: (sized(other=READS_10MS), sized(other=OLTP)),
    SizingKind.NO_REPLAY: (alone(replay=None), alone()),
    SizingKind.NO_STAND_IN: (alone(), alone(stand_in=ENDS)),
    SizingKind.UNMATCHED: (alone(matched={"reads": (1000.0, 880.0)}), alone(matched=MATCHED)),
    SizingKind.NOT_COMPARED: (alone(matched={"reads": (1000.0, None)}), alone(matched=MATCHED)),
    SizingKind.LOG_AMONG_DATA: (alone({"log_known": False}), alone()),
    SizingKind.SLOW_PERCENTILE: (
        alone(replay=by_percentile(a_replay())),
        alone(replay=by_percentile(a_replay(), 0.04)),
    ),
    SizingKind.GROUPED: (alone(replay=with_streams(a_replay(), grouped=2.4)), alone()),
    SizingKind.COMPRESSED: (alone(replay=a_replay(played=0.2)), alone()),
    SizingKind.BEHIND: (alone(replay=with_streams(a_replay(), behind_ms=3.2)), alone()),
    SizingKind.SMALLER: (alone(replay=a_replay(file_bytes=16 << 30)), alone()),
    SizingKind.POOLS_DIFFER: (alone(matched=MATCHED, pool_share=0.1), alone(matched=MATCHED)),
    SizingKind.OTHER_HOURS: (alone(), alone(replay=None)),
    SizingKind.NOT_PLAYED: (alone(peak(3)), alone(peak(1))),
    SizingKind.PEAKS_NOT_KNOWN: (alone({"peaks": None}), alone()),
    SizingKind.BEYOND_PLAYED: (alone(beyond(TOGETHER + 0.01)), alone(beyond(TOGETHER - 0.01))),
    SizingKind.STAND_IN_WINDOW: (alone(windows(2), stand_in=ENDS), alone(windows(1), stand_in=ENDS)),
    SizingKind.DATA_GROWTH: (sized(growth=1.5), sized(growth=1.0)),
    SizingKind.CACHES: (alone(stand_in=ENDS), alone(stand_in=ENDS, replay=None)),
    SizingKind.IO_SIZES: (alone(stand_in=ENDS), alone(stand_in=ENDS, replay=None)),
    SizingKind.OTHER_QUERIES: (alone(stand_in=ENDS), alone()),
    SizingKind.FEW_QUERIES: (alone(**queries(7, 0.0)), alone(**queries(22, 0.0))),
    SizingKind.QUERIES_WAITED: (alone(**queries(22, 0.85)), alone(**queries(22, 0.05))),
    SizingKind.MEAN_READS: (alone(), alone(replay=by_percentile(a_replay()).changed(decides="percentile"))),
}


def told(found: SizingSummary) -> set[Any]:
    lists = (found.answers, found.findings, found.memory, found.cautions, found.played, found.untested)
    return kinds_in(list(map(list, lists)))


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in CASES])
def test_a_sentence_that_would_be_false_is_not_told(kind, given):
    true, false = (told(case(given)) for case in CASES[kind])
    assert kind in true and kind not in false


# What the words of an answer claim beyond its kind. ------------------------------------------------------------


def answer(sizing_of: SizingSummary, *reaches: Reach) -> CandidateAnswer:
    """The answer for a candidate that came so far by replay and stand-in."""
    [one] = sizing_of.candidates
    return CandidateAnswer(one.name, one.folder, one.sizing, Need(1.0, 1500.0), OLTP, *reaches)


def between(ends: tuple[float, float]) -> Reach:
    return replay_reach(a_replay(ends))


BRACKET = st.tuples(st.floats(0.2, 4.0), st.floats(1.01, 3.0)).map(lambda two: (two[0], two[0] * two[1]))


@examples(BRACKET, BRACKET)
def test_headroom_lies_in_its_interval_and_what_ends_was_seen_at_its_end(candidate, one, other):
    found = answer(candidate, between(one), between(other))
    assert found.low <= found.middle <= found.high
    assert found.ends.facts["level"] == found.high == min(one[1], other[1])


@pytest.fixture(scope="module")
def candidate(given) -> SizingSummary:
    return alone()(given)


def test_what_lies_beyond_is_only_untried_if_nothing_tried_it(given, candidate):
    folder = given.folder()
    write_stand_in(folder, (1.3, 1.4), outcome="found", repeats=[(1.3, None)])  # the second run did not break
    stand_in = stand_in_reach(folder, a_demand())
    assert stand_in.high is None
    assert answer_finding(answer(candidate, replay_reach(ENDLESS), None)).facts["untried"]
    assert not answer_finding(answer(candidate, replay_reach(ENDLESS), stand_in)).facts["untried"]


def unseen(replay: Replay, *levels: float) -> Replay:
    """The replay with these levels, of which too little was seen."""
    limits = {"value": None, "low": None, "high": None, "verdict": "undecided"}
    return replay.changed(
        levels=[
            one.changed(verdict="undecided", limits=[limit.changed(**limits) for limit in one.limits])
            if one.level in levels
            else one
            for one in replay.levels
        ]
    )


def test_a_level_of_which_too_little_was_seen_did_not_break(given):
    lowest = unseen(a_replay((None, 0.5), outcome="none"), 0.5)
    found = alone(replay=lowest)(given)
    assert [one.kind for one in found.answers] == [SizingKind.UNKNOWN] and SizingKind.UNCONFIRMED in told(found)
    [carries] = alone(replay=unseen(a_replay(), 1.6))(given).answers
    assert carries.kind is SizingKind.CARRIES
    assert (carries.facts["low"], carries.facts["high"], carries.facts["untried"]) == (1.5, None, False)


def test_another_service_level_that_cannot_be_judged_is_no_verdict(given):
    """Of several windows the record has no times of single reads, which a percentile under another limit takes."""
    replay = by_percentile(a_replay()).changed(decides="percentile")
    levels = [
        one.changed(windows=[WindowSeen(begin=n, because="ios_per_s", limits=one.limits) for n in (1.0, 2.0)])
        for one in replay.levels
    ]
    [found] = sized({"replay": replay.changed(levels=levels)}, other=READS_10MS)(given).answers
    assert found.kind is SizingKind.UNKNOWN


def test_a_search_under_way_was_not_cut_short(given):
    facts = [
        facts_of(alone(replay=a_replay(outcome=None), status=status)(given).cautions, SizingKind.UNCONFIRMED)
        for status in ("running", "incomplete")
    ]
    assert [one["running"] for [one] in facts] == [True, False]


def test_a_gap_is_of_another_service_level_only_if_there_is_one(given):
    halved = a_replay((1.0, 2.0), outcome=None)
    for other, is_other in ((READS_10MS, True), (OLTP, False)):
        [gap] = facts_of(sized({"replay": halved}, other=other)(given).cautions, SizingKind.GAP)
        assert gap["other_level"] is is_other


def test_levels_between_that_were_tried_leave_no_gap(given):
    between = a_replay((1.0, 2.0)).levels[-1].changed(level=1.4)
    replay = a_replay((1.0, 2.0), outcome=None)
    replay = unseen(replay.changed(levels=(*replay.levels, between)), 1.4)
    assert SizingKind.GAP not in told(sized({"replay": replay}, other=OLTP)(given))


@pytest.mark.parametrize(
    ("costs", "names", "alike"),
    [((2.0, 1.0, 1.0), "b", ["c"]), ((3.0, 2.0, 1.0), "c", []), ((3.0, 2.0, None), "b", [])],
)
def test_those_that_cost_as_little_are_named_with_the_cheapest(given, costs, names, alike):
    candidates = [{"name": name, "cost": cost} for name, cost in zip("abc", costs, strict=True)]
    [facts] = facts_of(sized(*candidates)(given).findings, SizingKind.CHEAPEST)
    assert (facts["candidate"], facts["alike"]) == (names, alike)
    assert facts["carrying"] - len(facts["without_cost"]) == sum(cost is not None for cost in costs)


def test_replays_that_were_judged_by_unlike_figures_of_reads_are_refused(given):
    by_share = by_percentile(a_replay()).changed(decides="percentile")
    with pytest.raises(StallmarkError, match="different figures of reads"):
        sized({}, today={"replay": by_share})(given)


def test_a_percentile_without_io_is_no_need(given):
    def quiet(n: int) -> Mapping[str, Any]:
        still = {name: row | dict.fromkeys(row.keys() - {"size_bytes"}, 0.0) for name, row in busy(0).items()}
        return busy(n) if 100 <= n < 160 else still

    profile = write_made_profile(given.folder(), 600, file_io=quiet)
    candidate = write_sizing_of(given.folder(), demand_of(profile))
    with pytest.raises(StallmarkError, match="p90 of the profile has no I/O"):
        size(profile, [candidate], "p90")


def test_only_storage_was_tested_if_it_was(given):
    for replay, replayed in ((a_replay(), True), (None, False)):
        [facts] = facts_of(alone(replay=replay)(given).cautions, SizingKind.NO_STAND_IN)
        assert facts["replayed"] is replayed


def test_multiples_of_a_stand_in_are_those_of_its_search(given):
    off = {"reads": (1000.0, 880.0)}
    for stand_in, searched in ((ENDS, True), (None, False)):
        [facts] = facts_of(alone(matched=off, stand_in=stand_in)(given).cautions, SizingKind.UNMATCHED)
        assert facts["searched"] is searched


@pytest.mark.parametrize(("replay", "number"), [((1.5, 1.6), 2), (None, 2), (None, 1)])
def test_windows_were_replayed_if_anything_was(given, replay, number):
    found = alone(windows(number), replay=replay, stand_in=ENDS)(given)
    [facts] = facts_of(found.played, SizingKind.STAND_IN_WINDOW)
    assert facts == {"windows": number, "replayed": replay is not None}


def test_a_log_that_nothing_played_was_not_played_among_the_data(given):
    assert SizingKind.LOG_AMONG_DATA not in told(alone({"log_known": False}, replay=None)(given))


def test_the_stream_that_was_issued_late_is_named(given):
    replay = a_replay()
    late = [
        level.changed(streams=[one.changed(behind_ms=4.0 if one.name == "log" else 0.1) for one in level.streams])
        for level in replay.levels
    ]
    [found] = of_kind(alone(replay=replay.changed(levels=late))(given).cautions, SizingKind.BEHIND)
    assert (found.facts["stream"], found.facts["behind_ms"]) == ("log", 4.0)


def test_a_mean_that_the_stand_in_alone_is_judged_by_is_its_own(given):
    by_share = by_percentile(a_replay()).changed(decides="percentile")
    for replay, of_stand_in in ((by_share, True), (a_replay(), False), (None, False)):
        [facts] = facts_of(alone(replay=replay, stand_in=ENDS)(given).untested, SizingKind.MEAN_READS)
        assert facts["stand_in_alone"] is of_stand_in


def test_a_percentile_at_levels_without_an_answer_is_not_that_of_what_was_carried(given):
    slow: Sequence[Replay] = [by_percentile(a_replay(outcome=outcome)) for outcome in ("found", "unconfirmed")]
    assert [SizingKind.SLOW_PERCENTILE in told(alone(replay=one)(given)) for one in slow] == [True, False]

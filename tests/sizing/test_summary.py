"""How much of a need candidates carry: headroom and its interval, what ends first, and when nothing is said."""

from dataclasses import replace

import pytest
from support.findings import kinds_of, of_kind
from support.manifests import changed
from support.profiles import DATA, GIB, LOG, write_made_profile
from support.sizings import OLTP, a_demand, a_replay, by_percentile, write_sizing_of, write_stand_in

from stallmark.analysis.bottleneck import DeviceKind
from stallmark.analysis.profile import summarise_profile
from stallmark.analysis.profile_rates import MORE
from stallmark.errors import StallmarkError
from stallmark.format import number
from stallmark.record.manifest import read_manifest
from stallmark.record.manifest.storage import ServiceLevelObjective
from stallmark.report.text import sentence
from stallmark.sizing.candidate import need_of
from stallmark.sizing.demand import TOGETHER, demand_of
from stallmark.sizing.manifest import Beyond, WindowSeen, read_sizing, write_sizing
from stallmark.sizing.reach import Reach, SizingKind, replay_reach, stand_in_reach
from stallmark.sizing.summary import size, summarise_candidate

pytestmark = pytest.mark.thorough

NEAR = 0.015
"""A stand-in's levels are the I/Os that were counted: samples do not end where steps do."""
READS_10MS = ServiceLevelObjective(name="read", read_ms=10, percentile="p95")


def test_headroom_is_the_lower_of_two_methods_over_the_need(with_stand_in, profile):
    found = size(profile, [with_stand_in], growth=1.25)
    [one] = found.candidates
    assert one.deciding.method == "stand_in" and one.standing == "carries" and found.any_carries
    assert (one.low, one.high) == pytest.approx((1.0, 1.104), rel=NEAR)
    assert one.middle == pytest.approx((1.25 * 1.38) ** 0.5 / 1.25, rel=NEAR)
    assert found.answers[0].kind is SizingKind.CARRIES
    [methods] = of_kind(found.findings, SizingKind.METHODS)
    assert methods.facts["replay"][:2] == [1.5, 1.6] and methods.facts["stand_in"][:2] == pytest.approx(
        [1.25, 1.38], rel=NEAR
    )


def test_what_ends_first_is_told_of_the_step_beyond_the_ceiling(with_stand_in):
    [one] = summarise_candidate(with_stand_in).candidates
    assert one.stand_in.ends.facts["level"] == pytest.approx(1.38, rel=NEAR)
    assert one.stand_in.ends.facts["missed"] == [["reads", None, None, 20.0]]
    assert one.stand_in.ends.facts["verdict"].kind in DeviceKind
    assert one.replay.ends.facts["limit_ms"] == 20 and not one.replay.ends.facts["behind"]


def test_a_replay_that_falls_behind_names_the_stream():
    ends = replay_reach(a_replay((1.0, 1.05), behind={"log": 0.2, "writes": 0.1, "reads": 0.01})).ends
    assert ends.facts["behind"] == ["log", "writes"] and ends.facts["late"] == pytest.approx(0.2, abs=0.01)


@pytest.mark.parametrize(
    ("replay", "growth", "kind"),
    [
        ((1.5, 1.6), 1.5, SizingKind.CARRIES),
        ((1.5, 1.6), 1.55, SizingKind.OPEN),
        ((1.5, 1.6), 1.6, SizingKind.CARRIES_NOT),
        ((None, 0.5), 1.0, SizingKind.CARRIES_NOT),
        ((4.0, None), 2.0, SizingKind.CARRIES),
        ((4.0, None), 5.0, SizingKind.OPEN),
        (None, 1.0, SizingKind.UNKNOWN),
    ],
)
def test_a_candidate_carries_it_or_not_or_that_is_open(sized, replay, growth, kind):
    outcome = {(None, 0.5): "none", (4.0, None): "at_least"}.get(replay, "found")
    found = sized(replay=replay and a_replay(replay, outcome=outcome), growth=growth)
    assert [one.kind for one in found.answers] == [kind]
    assert found.any_carries is (kind is SizingKind.CARRIES)


def test_an_unfinished_sizing_is_never_said_to_carry(sized):
    found = sized(status="incomplete", because="the disk is full")
    assert found.answers[0].kind is SizingKind.OPEN and not found.answers[0].facts["whole"]
    assert of_kind(found.cautions, SizingKind.UNFINISHED)[0].facts["said"] == "the disk is full"


def test_an_unfinished_sizing_that_broke_below_the_need_does_not_carry_it(sized):
    assert sized(status="running", replay=(0.5, 0.6)).answers[0].kind is SizingKind.CARRIES_NOT


@pytest.mark.parametrize(("behind_ms", "said"), [(0.2, False), (3.2, True), (None, False)])
def test_a_replay_on_a_busy_machine_says_so(sized, behind_ms, said):
    replay = a_replay()
    streams = lambda level: tuple(one.changed(behind_ms=behind_ms) for one in level.streams)  # noqa: E731
    replay = replay.changed(levels=tuple(one.changed(streams=streams(one)) for one in replay.levels))
    found = sized(replay=replay)
    assert bool(of_kind(found.cautions, SizingKind.BEHIND)) is said


def test_levels_that_contradict_each_other_are_no_answer(sized):
    found = sized(replay=a_replay(outcome="unconfirmed"))
    assert found.answers[0].kind is SizingKind.UNKNOWN
    assert of_kind(found.cautions, SizingKind.UNCONFIRMED)[0].facts["runs"] == 1


def test_a_method_that_came_to_no_answer_leaves_it_open(with_stand_in, profile):
    sizing = read_sizing(with_stand_in)
    write_sizing(with_stand_in, sizing.changed(replay=a_replay(outcome="unconfirmed")))
    [answer] = size(profile, [with_stand_in]).answers
    write_sizing(with_stand_in, sizing)
    assert answer.kind is SizingKind.OPEN and answer.facts["without"] == ["replay"]


def test_repeats_of_the_stand_in_have_an_interval(tmp_path, profile):
    folder = write_sizing_of(tmp_path / "b", profile, replay=(8.0, 9.0), stand_in=(1.3, 1.4))
    write_stand_in(folder / "more", (1.3, 1.4), repeats=[(1.1, 1.2)])
    one = stand_in_reach(folder / "more", a_demand())
    assert (one.runs, one.unconfirmed) == (2, 0)
    assert one.low < 1.1 and one.high > 1.4 and one.middle == pytest.approx((1.3 * 1.4 * 1.1 * 1.2) ** 0.25, rel=NEAR)


def test_a_stand_in_that_does_more_than_the_profile_reaches_more(tmp_path):
    write_stand_in(tmp_path / "exact", (1.3, 1.4))
    write_stand_in(tmp_path / "more", (1.3, 1.4), does=1.5)
    write_stand_in(tmp_path / "cold", (1.3, 1.4), cold=2.0)
    exact, more, cold = (stand_in_reach(tmp_path / name, a_demand()) for name in ("exact", "more", "cold"))
    assert (cold.low, cold.high) == pytest.approx((exact.low, exact.high), rel=0.02)
    assert exact.low == pytest.approx(1.3, rel=0.02) and exact.high == pytest.approx(1.4, rel=0.02)
    assert more.low == pytest.approx(1.5 * exact.low, rel=0.02)
    assert [point.level for point in more.points] == pytest.approx([1.5 * p.level for p in exact.points], rel=0.02)


def test_another_service_level_is_judged_by_the_levels_that_were_tried(with_stand_in, profile):
    found = size(profile, [with_stand_in], other=READS_10MS)
    [one] = found.candidates
    # 4 + 16.5 (x / breaks)² ms: 10 ms at 0.6 of the level that breaks 20
    assert one.replay.low == 0.5 and one.replay.high == 1.0 and found.service_level.read_ms == 10
    assert (one.stand_in.low, one.stand_in.high) == pytest.approx((0.5, 1.0), rel=NEAR)
    assert {gap.facts["method"] for gap in of_kind(found.cautions, SizingKind.GAP)} == {"replay", "stand_in"}
    assert one.standing == "carries_not" and one.stand_in.ends.facts["level"] == pytest.approx(1.0, rel=NEAR)


def test_the_service_level_that_was_searched_has_no_gap(with_stand_in, profile):
    assert not of_kind(size(profile, [with_stand_in]).cautions, SizingKind.GAP)


def test_a_looser_service_level_reaches_the_end_of_what_was_tried(sized):
    found = sized(other=ServiceLevelObjective(name="read", read_ms=100, percentile="p95"))
    assert found.answers[0].facts["high"] is None and found.answers[0].facts["low"] == pytest.approx(1.6)


def test_a_level_that_fell_behind_breaks_every_service_level(sized):
    replay = a_replay((1.0, 1.05), behind={"log": 0.2})
    found = sized(replay=replay, other=ServiceLevelObjective(name="read", read_ms=100, percentile="p95"))
    assert found.candidates[0].high == 1.05


def test_a_replay_is_judged_by_the_limit_that_decides():
    both = by_percentile(a_replay((1.5, 1.6)))  # the mean breaks 30 ms nowhere, p95 from a mean of 15 ms on
    assert replay_reach(both, 30.0).high is None
    other = replay_reach(both.changed(decides="percentile"), 30.0)
    assert (other.low, other.high) == (1.0, 1.5) and other.ends.facts["slower"] == pytest.approx(0.1)


def test_a_percentile_that_breaks_below_the_ceiling_of_the_mean_is_said(sized):
    slow = by_percentile(a_replay((1.5, 1.6)))
    [one] = of_kind(sized(replay=slow).cautions, SizingKind.SLOW_PERCENTILE)
    assert (one.facts["percentile"], one.facts["slower"]) == ("p95", 0.1)
    assert not of_kind(sized(1, replay=slow.changed(decides="percentile")).cautions, SizingKind.SLOW_PERCENTILE)


def test_a_log_that_was_written_in_groups_is_said(sized):
    replay = a_replay((1.5, 1.6))
    last = replay.levels[-1]
    streams = tuple(one.changed(grouped=2.4 if one.name == "log" else 1.0) for one in last.streams)
    found = sized(replay=replay.changed(levels=(*replay.levels[:-1], last.changed(streams=streams))))
    assert of_kind(found.cautions, SizingKind.GROUPED)[0].facts["level"] == 1.6
    assert not of_kind(sized(1, replay=replay).cautions, SizingKind.GROUPED)


def test_without_a_limit_on_reads_no_other_is_judged():
    blind = a_replay()
    blind = blind.changed(levels=tuple(level.changed(limits=()) for level in blind.levels))
    with pytest.raises(StallmarkError, match="without a limit on reads"):
        replay_reach(blind, 10.0)


def test_the_need_is_growth_times_a_percentile_over_the_busiest_window(profile):
    found, demand = summarise_profile(profile), demand_of(profile)
    assert need_of(found, demand, None, 1.5).multiple == 1.5
    p90 = need_of(found, demand, "p90", 1.5)  # 15 of 150 minutes are the busy ones: ninety per cent are not
    assert p90.multiple == pytest.approx(0.5, rel=0.01) and p90.minutes == 150
    assert need_of(found, demand, "max", 1.0).multiple == pytest.approx(1.0, rel=0.01)


@pytest.mark.parametrize("percentile", [None, "p90"])
@pytest.mark.parametrize("growth", [1.0, 1.5, 0.5])
def test_growth_is_applied_once_and_stated_once(sized, percentile, growth):
    found = sized(percentile=percentile, growth=growth)
    [need] = [one for one in found.findings if one.kind in (SizingKind.NEED, SizingKind.NEED_BY_WINDOW)]
    base = need.facts["minutes_per_s" if percentile else "window_per_s"]
    assert need.facts["per_s"] == pytest.approx(growth * base)
    assert found.need.per_s == pytest.approx(found.need.multiple * found.need.window_per_s)
    text = sentence(need)
    assert text.startswith(f"The need is {number(need.facts['per_s'])} I/Os per second")
    assert text.count("growth") == (growth != 1) and text.count(f"{growth:g}×") <= 1


def test_a_percentile_of_too_few_minutes_gives_way_to_the_busiest_window(sized):
    found = sized(percentile="p99", growth=1.2)
    [need] = of_kind(found.findings, SizingKind.NEED_BY_WINDOW)
    assert found.need.multiple == 1.2 and (need.facts["percentile"], need.facts["minutes"]) == ("p99", 150)
    assert not of_kind(found.findings, SizingKind.NEED)


def test_a_need_below_the_busiest_window_is_said(sized):
    below = sized(percentile="p90")
    assert of_kind(below.cautions, SizingKind.NEED_BELOW_BUSIEST)[0].facts["times"] == pytest.approx(3, rel=0.01)
    assert not of_kind(sized(1, percentile="max").cautions, SizingKind.NEED_BELOW_BUSIEST)
    assert not of_kind(sized(2).cautions, SizingKind.NEED_BELOW_BUSIEST)


def test_the_folder_of_a_candidate_needs_no_profile(with_stand_in):
    found = summarise_candidate(with_stand_in)
    assert found.need.multiple == 1 and found.profile is None
    assert not set(kinds_of(found.findings)) & {SizingKind.NEED, SizingKind.NEED_BY_WINDOW}


def test_a_candidate_of_another_profile_is_refused(tmp_path, profile):
    with pytest.raises(StallmarkError, match="another profile"):
        size(profile, [write_sizing_of(tmp_path / "b", a_demand())])


def test_unlike_service_levels_are_refused_unless_one_is_given(tmp_path, profile):
    a = write_sizing_of(tmp_path / "a", profile)
    b = write_sizing_of(tmp_path / "b", profile, service_level=OLTP.changed(read_ms=5))
    with pytest.raises(StallmarkError, match="--slo"):
        size(profile, [a, b])
    assert len(size(profile, [a, b], other=READS_10MS).candidates) == 2


def test_stand_ins_on_data_of_several_versions_are_refused(tmp_path, profile):
    a, b, c = (write_sizing_of(tmp_path / name, profile, stand_in=(1.25, 1.38)) for name in "abc")
    alone = write_sizing_of(tmp_path / "alone", profile)
    for run in (b / "ceiling").iterdir():
        loads = read_manifest(run).loads
        changed(run, loads=[one.changed(workload=one.workload.changed(version=9)) for one in loads if one.workload])
    for candidates, today in (([a, b], None), ([a, c], b), ([alone, a, b], None)):
        with pytest.raises(
            StallmarkError, match=r"ran on data version 1 and 9 of the bank, .*: run the older one again"
        ):
            size(profile, candidates, today=today)
    assert len(size(profile, [alone, b]).candidates) == 2 and len(size(profile, [a, c]).candidates) == 2


def test_other_windows_of_the_profile_are_refused(tmp_path, profile):
    a = write_sizing_of(tmp_path / "a", profile)
    b = write_sizing_of(tmp_path / "b", demand_of(profile, window_s=300))
    with pytest.raises(StallmarkError, match="other windows"):
        size(profile, [a, b])


@pytest.mark.parametrize("as_today", [False, True])
def test_emulated_is_not_compared_with_real(tmp_path, profile, as_today):
    a = write_sizing_of(tmp_path / "a", profile)
    b = write_sizing_of(tmp_path / "b", profile, emulated=True)
    with pytest.raises(StallmarkError, match="Emulated"):
        size(profile, [a], today=b) if as_today else size(profile, [a, b])


def test_the_cheapest_is_among_those_that_carry_it(tmp_path, profile):
    made = {"a": ((1.5, 1.6), 42_000), "b": ((0.7, 0.8), 9_000), "c": ((1.2, 1.3), 18_000), "d": ((1.2, 1.3), None)}
    folders = [
        write_sizing_of(tmp_path / name, profile, name, replay=ends, cost=cost) for name, (ends, cost) in made.items()
    ]
    [one] = of_kind(size(profile, folders).findings, SizingKind.CHEAPEST)
    assert (one.facts["candidate"], one.facts["carrying"], one.facts["without_cost"]) == ("c", 3, ["d"])
    assert not of_kind(size(profile, folders[:2]).findings, SizingKind.CHEAPEST)


def test_two_of_one_name_are_told_apart_by_their_folders(tmp_path, profile):
    folders = [write_sizing_of(tmp_path / name, profile, "array") for name in ("x", "y")]
    assert [one.name for one in size(profile, folders).candidates] == ["array (x)", "array (y)"]


def test_figures_per_unit_are_of_what_is_carried(tmp_path, profile):
    demand = demand_of(profile).changed(transactions=400.0)
    found = summarise_candidate(write_sizing_of(tmp_path / "b", demand, watts=500)).candidates[0]
    assert found.per_s == 600 and found.per_s_of(500) == pytest.approx(1.2) and found.per_s_of(None) is None
    unknown = summarise_candidate(write_sizing_of(tmp_path / "c", profile, watts=500)).candidates[0]
    assert unknown.per_s is None and unknown.per_s_of(500) is None


def test_a_candidate_has_a_ratio_to_the_hardware_of_today(tmp_path, profile):
    old = write_sizing_of(tmp_path / "old", profile, "old", replay=(1.0, 1.1))
    found = size(profile, [write_sizing_of(tmp_path / "b", profile, replay=(2.0, 2.2))], today=old)
    [one] = of_kind(found.findings, SizingKind.TODAY)
    assert one.facts["ratio"] == pytest.approx(2.0)
    assert (one.facts["low"], one.facts["high"]) == pytest.approx((2.0 / 1.1, 2.2))
    assert not set(kinds_of(found.findings)) & {SizingKind.TODAY_BELOW, SizingKind.TODAY_OPEN}


def test_a_ceiling_that_was_not_reached_has_no_ratio_to_today(tmp_path, profile):
    old = write_sizing_of(tmp_path / "old", profile, "old", replay=(0.8, 0.9))
    endless = a_replay((4.0, None), outcome="at_least")
    found = size(profile, [write_sizing_of(tmp_path / "b", profile, replay=endless)], today=old)
    assert of_kind(found.findings, SizingKind.TODAY_OPEN) and not of_kind(found.findings, SizingKind.TODAY)
    assert of_kind(found.findings, SizingKind.TODAY_BELOW)[0].facts["high"] == 0.9


@pytest.mark.parametrize(("read_ms", "said"), [(6.0, False), (24.0, True), (None, False)])
def test_reads_that_are_slow_today_are_said(tmp_path, read_ms, said):
    found = summarise_candidate(write_sizing_of(tmp_path / "b", a_demand(read_ms=read_ms)))
    assert bool(of_kind(found.findings, SizingKind.SLOW_TODAY)) is said


def test_memory_is_told_as_far_as_it_is_known(tmp_path):
    found = summarise_candidate(write_sizing_of(tmp_path / "b", a_demand(), memory_bytes=64 << 30))
    [one] = of_kind(found.memory, SizingKind.MEMORY)
    assert one.facts["today_bytes"] == 20 * GIB and one.facts["memory_bytes"] == 64 * GIB
    unknown = summarise_candidate(write_sizing_of(tmp_path / "c", a_demand(pool_bytes=None)))
    assert not unknown.memory


def test_of_runs_some_of_which_never_broke_the_interval_is_open():
    one: Reach = replay_reach(a_replay((4.0, None), outcome="at_least"))
    assert (one.low, one.high, one.middle) == (4.0, None, None) and one.is_known
    assert not replace(one, low=0.0).is_known


def with_backup(n):
    """A busy quarter of an hour, and at another time a backup: few large reads."""
    data = {name: value * (3 if 100 <= n < 160 else 1) for name, value in DATA.items()}
    if 400 <= n < 460:
        data |= {"reads": data["reads"] + 150, "read_bytes": data["read_bytes"] + 150 * 2**20, "read_stall_ms": 9000.0}
    return {"data": data, "log": LOG}


@pytest.fixture(scope="module")
def night(tmp_path_factory):
    return write_made_profile(tmp_path_factory.mktemp("night") / "profile", 600, file_io=with_backup)


def as_made_before(demand):
    """The demand as a version made it that looked for windows by I/Os and writes alone."""
    return demand.changed(windows=demand.windows[:1], peaks=None, beyond=None)


def test_a_backup_that_was_not_played_leaves_it_open(tmp_path, night):
    old = write_sizing_of(tmp_path / "old", as_made_before(demand_of(night)), replay=(1.5, 1.6))
    found = size(night, [old])
    assert not found.any_carries and found.answers[0].kind is SizingKind.OPEN
    assert found.answers[0].facts["unplayed"] == ["read_bytes_per_s"] and found.answers[0].facts["peaks_known"]
    [said] = of_kind(found.played, SizingKind.NOT_PLAYED)
    assert said.facts["measure"] == "read_bytes_per_s" and said.facts["per_s"] > 40 * said.facts["played"]
    assert of_kind(found.played, SizingKind.OTHER_HOURS)[0].facts["most"] is None


def test_a_backup_that_was_played_is_named_and_counts(tmp_path, night):
    found = size(night, [write_sizing_of(tmp_path / "new", night, replay=(1.5, 1.6), stand_in=(1.6, 1.7))])
    assert found.any_carries and not of_kind(found.played, SizingKind.NOT_PLAYED)
    [said] = of_kind(found.played, SizingKind.OTHER_HOURS)
    assert [because for because, _ in said.facts["windows"]] == ["ios_per_s", "read_bytes_per_s"]
    assert 1 <= said.facts["most"] <= MORE and not said.facts["all"]
    assert of_kind(found.played, SizingKind.STAND_IN_WINDOW)[0].facts["windows"] == 2
    [need] = of_kind(found.findings, SizingKind.NEED_BY_WINDOW)
    assert need.facts["others"] == 1


def test_without_its_profile_an_old_sizing_does_not_know_what_was_not_played(tmp_path, night):
    old = write_sizing_of(tmp_path / "old", as_made_before(demand_of(night)), replay=(1.5, 1.6))
    found = summarise_candidate(old)
    assert found.answers[0].kind is SizingKind.OPEN and not found.answers[0].facts["peaks_known"]
    assert of_kind(found.played, SizingKind.PEAKS_NOT_KNOWN)
    assert not of_kind(summarise_candidate(write_sizing_of(tmp_path / "b", night)).played, SizingKind.PEAKS_NOT_KNOWN)


def test_what_lies_beyond_the_windows_is_named_if_it_is_far(tmp_path):
    for share, said in ((TOGETHER - 0.01, 0), (TOGETHER + 0.01, 1)):
        beyond = Beyond(begin=0.0, measure="writes_per_s", share=share)
        found = summarise_candidate(write_sizing_of(tmp_path / f"b{said}", a_demand(beyond=beyond)))
        assert len(of_kind(found.played, SizingKind.BEYOND_PLAYED)) == said


def test_reads_that_are_slow_today_are_said_of_the_window_that_they_are_slow_in(tmp_path, night):
    found = summarise_candidate(write_sizing_of(tmp_path / "b", night))
    [slow] = of_kind(found.findings, SizingKind.SLOW_TODAY)
    assert slow.facts["because"] == "read_bytes_per_s" and slow.facts["read_ms"] == pytest.approx(9000 / 300)


def test_what_ends_first_names_its_window():
    replay = a_replay((1.0, 1.05))
    last = replay.levels[-1]
    [limit] = last.limits
    seen = [
        WindowSeen(begin=1.0, because="ios_per_s", limits=(limit.changed(value=9.0),)),
        WindowSeen(begin=2.0, because="read_bytes_per_s", limits=(limit,), behind={"log": 0.2}),
    ]

    def ends(*windows, **more):
        levels = (*replay.levels[:-1], last.changed(windows=windows, **more))
        return replay_reach(replay.changed(levels=levels)).ends.facts

    both = ends(*seen, backlog=True)
    assert both["slow_in"] == ["read_bytes_per_s", 2.0] and both["read_ms"] == limit.value
    assert (both["behind"], both["behind_in"], both["late"]) == (["log"], [["read_bytes_per_s", 2.0]], 0.2)
    alone = ends(seen[1], backlog=True)
    assert alone["slow_in"] is None and alone["behind_in"] == [], "there is no other that it could be"
    assert ends(*seen)["behind"] == []


def test_the_reads_of_a_level_are_those_of_the_window_that_decides():
    replay = a_replay((1.0, 1.05))
    last = replay.levels[-1]
    seen = [WindowSeen(begin=float(n), because="ios_per_s", limits=last.limits) for n in range(2)]
    limits = (last.limits[0].changed(value=31.0),)
    found = replay_reach(replay.changed(levels=(last.changed(windows=seen, limits=limits),)))
    assert [point.read_ms for point in found.points] == [31.0]

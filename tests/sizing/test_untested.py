"""The limits of a sizing: what was not tested is said where it was not, and only there."""

import pytest
from support.findings import kinds_of, of_kind
from support.sizings import a_demand, a_replay, write_sizing_of

from stallmark.sizing.manifest import write_sizing
from stallmark.sizing.reach import SizingKind
from stallmark.sizing.summary import SizingSummary, summarise_candidate

pytestmark = pytest.mark.thorough

UNTESTED = {
    SizingKind.NO_STAND_IN: {},
    SizingKind.NO_REPLAY: {"replay": None},
    SizingKind.COMPRESSED: {"replay": a_replay(played=0.2)},
    SizingKind.SMALLER: {"replay": a_replay(file_bytes=16 << 30)},
    SizingKind.UNMATCHED: {"matched": {"reads": (1000.0, 880.0)}},
    SizingKind.NOT_COMPARED: {"matched": {"cpu_cores": (None, 2.0)}},
    SizingKind.POOLS_DIFFER: {"matched": {"reads": (1000.0, 1000.0)}, "pool_share": 0.1},
    SizingKind.UNFINISHED: {"status": "running"},
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> SizingSummary:
    """A candidate of which all was tested that can be."""
    return summarise_candidate(write_sizing_of(tmp_path_factory.mktemp("s") / "b", a_demand(), stand_in=(1.2, 1.3)))


def test_of_a_sound_candidate_nothing_is_lacking(sound):
    assert not sound.cautions


@pytest.mark.parametrize("kind", UNTESTED)
def test_what_was_not_tested_is_said(tmp_path, kind):
    assert of_kind(summarise_candidate(write_sizing_of(tmp_path / "b", a_demand(), **UNTESTED[kind])).cautions, kind)


def test_within_a_tenth_the_stand_in_matches(tmp_path):
    close = write_sizing_of(tmp_path / "b", a_demand(), matched={"reads": (1000.0, 1095.0)})
    assert not of_kind(summarise_candidate(close).cautions, SizingKind.UNMATCHED)


def test_limits_of_every_sizing_are_said_and_others_only_where_they_hold(sound, sized, tmp_path):
    always = {SizingKind.IO_SIZES, SizingKind.CACHES, SizingKind.OTHER_QUERIES, SizingKind.MEAN_READS}
    assert set(kinds_of(sound.untested)) == always
    assert SizingKind.DATA_GROWTH in kinds_of(sized(growth=1.5).untested)
    blind = summarise_candidate(write_sizing_of(tmp_path / "log", a_demand(log_known=False)))
    assert SizingKind.LOG_AMONG_DATA in kinds_of(blind.untested)
    bare = summarise_candidate(write_sizing_of(tmp_path / "bare", a_demand(), replay=None))
    assert not set(kinds_of(bare.untested)) & {SizingKind.IO_SIZES, SizingKind.CACHES, SizingKind.OTHER_QUERIES}


@pytest.mark.parametrize("share", [0.0, 0.05, 0.85])
def test_queries_that_waited_in_the_trial_are_said(sized, share):
    [one] = sized(stand_in=(1.25, 1.38)).candidates
    write_sizing(one.folder, one.sizing.changed(stand_in=one.sizing.stand_in.changed(waited={"reports": share})))
    said = of_kind(summarise_candidate(one.folder).cautions, SizingKind.QUERIES_WAITED)
    assert [one.facts["share"] for one in said] == [share] * (share > 0.1)


@pytest.mark.parametrize(
    ("rate", "ended", "waited", "few"),
    [(0.05, 40, 0.0, None), (0.05, 7, 0.5, 7), (0.001, 40, None, None), (0.0, 7, None, None), (None, None, None, None)],
)
def test_queries_did_not_run_where_none_began(sized, rate, ended, waited, few):
    found = sized(stand_in=(1.25, 1.38))
    [one] = found.candidates
    queries = {} if ended is None else {"reports": ended}
    rates = one.sizing.stand_in.rates | ({} if rate is None else {"reports": rate})
    began = {} if waited is None else {"reports": waited}
    stand_in = one.sizing.stand_in.changed(rates=rates, queries=queries, waited=began)
    write_sizing(one.folder, one.sizing.changed(stand_in=stand_in))
    again = summarise_candidate(one.folder)
    [said] = of_kind(again.untested, SizingKind.OTHER_QUERIES)
    assert said.facts["ran"] is (waited is not None) and said.facts["without"] == [one.name] * (waited is None)
    assert [one.facts["ended"] for one in of_kind(again.cautions, SizingKind.FEW_QUERIES)] == ([few] if few else [])

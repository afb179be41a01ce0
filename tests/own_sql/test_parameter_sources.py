"""Sources of parameters: what they draw, for whom, and always the same for the same seed."""

import random
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
import scipy  # its parts are imported when first asked for
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.own_sql.folder import read_definition
from stallmark.own_sql.model import OwnSql
from stallmark.own_sql.parameter_sources import Place, Users, open_source
from stallmark.transactions import define
from stallmark.transactions.workload import RunClock, WorkloadContext

ROWS = [(number, f"r{number % 3}") for number in range(1, 21)]


def source(key: str, **given):
    workload = {"name": "x", "transactions": {"t": {"sql": "SELECT 1"}}, "parameters": {key: given}}
    return OwnSql.model_validate(workload).model_dump(mode="json")["parameters"][key]


def opened(key: str, users: int = 1, rows=None, seed: int = 1, **given):
    return open_source(key, source(key, **given), lambda text: rows or ROWS, RunClock(), seed, Users(users)).draw


def drawn(draw, count: int = 1000, user: int = 0, seed: int = 3):
    rng = random.Random(seed)
    return [draw(rng, Place(user, turn)) for turn in range(count)]


def test_a_row_gives_values_that_belong_together():
    found = drawn(opened("id, region", query="SELECT 1"))
    assert set(found) == set(ROWS)


@given(turns=st.lists(st.sampled_from(["look", "dice"]), max_size=30), seed=st.integers(0, 99))
def test_what_a_user_draws_does_not_depend_on_what_comes_in_between(turns, seed):
    transactions = {
        "look": {"sql": "SELECT :id", "parameters": {"id": {"from": 1, "to": 10**9}}},
        "dice": {"sql": "\\set n random(1, 1000000000)\nSELECT :n;", "script": "pgbench"},
    }
    workload = define(read_definition({"name": "own", "transactions": transactions}))

    def inputs_in(order):
        shared = workload.users.share(WorkloadContext({}, 1, lambda sql: [], lambda *_: None))
        rng = random.Random(seed)
        mine = {kind.name: kind(shared) for kind in workload.transactions}
        for transaction in mine.values():
            transaction.begin_user(3, rng)
        inputs = {"look": [], "dice": []}
        for name in order:
            inputs[name].append(mine[name].inputs(rng))
        return inputs

    assert inputs_in(turns) == inputs_in(sorted(turns))


@given(users=st.integers(1, 20), mode=st.sampled_from(["uniform", "in order", {"zipf": 1.1}]))
def test_users_apart_never_share_a_row_and_together_have_all(users, mode):
    draw = opened("id, region", users, query="SELECT 1", apart=True, draw=mode)
    of_user = [set(drawn(draw, 400, user)) for user in range(users)]
    assert sum(map(len, of_user)) == len(set().union(*of_user))
    if mode == "in order":
        assert set().union(*of_user) == set(ROWS)


def test_rows_in_order_are_shared_out_among_users():
    draw = opened("id, region", 4, query="SELECT id, region FROM t ORDER BY id", draw="in order")
    found = sorted(row for user in range(4) for row in drawn(draw, 5, user))
    assert found == ROWS


def test_rows_are_the_same_in_every_process_whatever_the_server_returns():
    shuffled = random.Random(5).sample(ROWS, len(ROWS))
    first, second = (drawn(opened("id, region", rows=rows, query="SELECT 1")) for rows in (ROWS, shuffled))
    assert first == second


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (datetime(2026, 1, 2), "2026-01-02T00:00:00.000"),
        (datetime(2026, 1, 2, 3, 4, 5, 678_000), "2026-01-02T03:04:05.678"),
        (datetime(2026, 1, 2, 3, 4, 5, 678_901), "2026-01-02T03:04:05.678901"),
    ],
)
def test_times_of_a_query_are_texts_that_every_type_of_time_takes(moment, text):
    """SQL Server's `datetime` takes three decimals at most, and reads a time without T by the session's language."""
    assert drawn(opened("id", rows=[(moment,)], query="SELECT 1"), 1) == [(text,)]


@pytest.mark.thorough
def test_weights_and_zipf_draw_in_proportion():
    weighted = [(1, 1.0), (2, 0.0), (3, 3.0), (4, 6.0)]
    counts = Counter(value for (value,) in drawn(opened("id", rows=weighted, query="SELECT 1", draw="weight"), 20_000))
    assert 2 not in counts
    assert scipy.stats.chisquare([counts[1], counts[3], counts[4]], [2000, 6000, 12_000]).pvalue > 1e-3
    zipf = Counter(value for (value,) in drawn(opened("n", **{"from": 1, "to": 30}, draw={"zipf": 0.7}), 20_000))
    shares = [k**-0.7 for k in range(1, 31)]
    expected = [20_000 * share / sum(shares) for share in shares]
    assert scipy.stats.chisquare([zipf[k] for k in range(1, 31)], expected).pvalue > 1e-3


def test_ranges_have_both_ends_and_decimals():
    assert {value for (value,) in drawn(opened("n", **{"from": -1, "to": 2}))} == {-1, 0, 1, 2}
    prices = {value for (value,) in drawn(opened("n", **{"from": 0.5, "to": 0.53}, decimals=2))}
    assert prices == {"0.50", "0.51", "0.52", "0.53"}


def test_times_move_with_the_clock():
    draw = opened("t", time={"from": "-2d", "to": "-1d"})
    now = datetime.now(UTC).replace(tzinfo=None)
    for (text,) in drawn(draw, 50):
        assert (
            timedelta(days=1) <= now + timedelta(minutes=1) - datetime.fromisoformat(text) <= timedelta(days=2, hours=1)
        )
    [(day,)] = drawn(opened("t", time="now", **{"as": "date"}), 1)
    assert abs(datetime.fromisoformat(day) - now) < timedelta(days=1, minutes=1)


@pytest.mark.thorough
def test_names_are_those_of_the_locale_and_the_seed():
    first, again, other = (drawn(opened("n", faker="name", locale="de_DE", distinct=50, seed=s), 40) for s in (1, 1, 2))
    assert first == again != other


@pytest.mark.parametrize(
    ("given", "rows", "named"),
    [
        ({"query": "SELECT 1"}, [()], "columns"),
        ({"query": "SELECT 1"}, [(1,)], "columns"),
        ({"query": "SELECT 1", "draw": "weight"}, [(1, "a", -1)], "weights"),
        ({"query": "SELECT 1", "apart": True}, [(1, "a")], "apart"),
        ({"query": "SELECT 1"}, [([1], "a")], "cast"),
    ],
)
def test_rows_that_do_not_fit_are_refused(given, rows, named):
    with pytest.raises(StallmarkError, match=named):
        opened("id, region", 2, rows=rows, **given)


def test_an_empty_query_is_refused():
    with pytest.raises(StallmarkError, match="no row"):
        open_source("id", source("id", query="SELECT 1"), lambda text: [], RunClock(), 1, Users(1))


def test_a_provider_that_faker_lacks_is_refused():
    with pytest.raises(StallmarkError, match="Faker"):
        opened("n", faker="nothing_of_the_kind")

"""The order of the queries in each stream, and how many streams a run has."""

import pytest

from stallmark.errors import StallmarkError
from stallmark.transactions.warehouse.queries import MOST_STREAMS, POWER, QUERIES, order, streams_for

ALL = range(MOST_STREAMS + 1)


@pytest.mark.parametrize("stream", ALL)
def test_an_order_has_each_query_once(stream):
    assert sorted(order(stream)) == list(QUERIES)


def test_no_two_streams_have_the_same_order():
    assert MOST_STREAMS == 40
    assert len({order(stream) for stream in ALL}) == 41


def test_the_first_and_the_last_order():
    assert order(POWER) == (14, 2, 9, 20, 6, 17, 18, 8, 21, 13, 3, 22, 16, 4, 11, 15, 1, 10, 19, 5, 7, 12)
    assert order(1) == (21, 3, 18, 5, 11, 7, 6, 20, 17, 12, 16, 15, 13, 10, 2, 8, 14, 19, 9, 22, 1, 4)
    assert order(40) == (13, 15, 17, 1, 22, 11, 3, 4, 7, 20, 14, 21, 9, 8, 2, 18, 16, 6, 10, 12, 5, 19)


# Of each query: its place in each order times the number of the order, both from 1, added up. Taken from two public
# listings of appendix A, which are the same.
WEIGHTED_PLACES = [
    9070, 11078, 9776, 9004, 8346, 11204, 9127, 10706, 10138, 10253, 10085,
    12163, 8448, 7420, 9588, 9677, 9050, 9754, 13875, 10902, 9027, 9142,
]  # fmt: skip


def test_the_table_is_that_of_the_specification():
    places = [sum((stream + 1) * (order(stream).index(query) + 1) for stream in ALL) for query in QUERIES]
    assert places == WEIGHTED_PLACES


@pytest.mark.parametrize("stream", [-1, 41, 1_000])
def test_no_order_for_others(stream):
    with pytest.raises(StallmarkError, match=rf"no stream {stream}: .* ask for 1 to 40\.$"):
        order(stream)


@pytest.mark.parametrize(
    ("factor", "streams"),
    [(0.01, 2), (0.1, 2), (1, 2), (10, 3), (30, 4), (100, 5), (300, 6), (1_000, 7), (3_000, 8), (10_000, 9)],
)  # fmt: skip
def test_streams_by_scale(factor, streams):
    assert streams_for(factor) == streams

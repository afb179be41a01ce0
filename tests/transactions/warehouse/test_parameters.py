"""Parameters of the queries lie in their range, belong together, and are the same for the same seed."""

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.transactions.warehouse.parameters import (
    COLOURS,
    CONTAINERS,
    FIRST_WORDS,
    NATIONS,
    REGIONS,
    SECOND_WORDS,
    SEGMENTS,
    SHIP_MODES,
    TYPES,
    VALIDATION,
    parameters,
    validation,
)
from stallmark.transactions.warehouse.queries import QUERIES, names

SEEDS = st.integers(0, 2**63 - 1)
STREAMS = st.integers(0, 40)
DRAWN = given(seed=SEEDS, stream=STREAMS)

# The first and the last day that a query may ask for, and how many days in all: months, years, or days.
DATES = {
    3: (date(1995, 3, 1), date(1995, 3, 31), 31), 4: (date(1993, 1, 1), date(1997, 10, 1), 58),
    5: (date(1993, 1, 1), date(1997, 1, 1), 5), 6: (date(1993, 1, 1), date(1997, 1, 1), 5),
    10: (date(1993, 2, 1), date(1995, 1, 1), 24), 12: (date(1993, 1, 1), date(1997, 1, 1), 5),
    14: (date(1993, 1, 1), date(1997, 12, 1), 60), 15: (date(1993, 1, 1), date(1997, 10, 1), 58),
    20: (date(1993, 1, 1), date(1997, 1, 1), 5),
}  # fmt: skip
BRAND = re.compile(r"Brand#[1-5][1-5]")


def whole(given: str, least: int, most: int) -> bool:
    return given == str(int(given)) and least <= int(given) <= most


@pytest.mark.parametrize("query", QUERIES)
def test_names_are_those_of_the_text(query):
    assert parameters(query, 1, 0, 1).keys() == names(query) == validation(query, 1).keys()


@DRAWN
def test_a_pure_function_of_seed_stream_and_query(seed, stream):
    drawn = [parameters(query, seed, stream, 1) for query in QUERIES]
    assert drawn == [parameters(query, seed, stream, 1) for query in QUERIES]
    assert drawn != [parameters(query, seed, stream + 1, 1) for query in QUERIES]
    assert drawn != [parameters(query, seed + 1, stream, 1) for query in QUERIES]


@pytest.mark.parametrize("query", DATES)
def test_dates_are_all_there_are(query):
    first, last, days = DATES[query]
    drawn = {date.fromisoformat(parameters(query, 1, stream, 1)["date"]) for stream in range(1_000)}
    assert (min(drawn), max(drawn), len(drawn)) == (first, last, days)
    assert query == 3 or all(day.day == 1 for day in drawn)
    assert days != 5 or all(day.month == 1 for day in drawn)


@DRAWN
def test_ranges(seed, stream):
    drawn = {query: parameters(query, seed, stream, 1) for query in QUERIES}
    assert whole(drawn[1]["delta"], 60, 120)
    assert whole(drawn[2]["size"], 1, 50)
    assert drawn[2]["type"] in TYPES[2] and drawn[2]["region"] in REGIONS
    assert drawn[3]["segment"] in SEGMENTS
    assert drawn[6]["discount"] in {f"0.0{hundredths}" for hundredths in range(2, 10)}
    assert whole(drawn[6]["quantity"], 24, 25)
    assert drawn[9]["colour"] in COLOURS and drawn[20]["colour"] in COLOURS
    assert drawn[13]["word1"] in FIRST_WORDS and drawn[13]["word2"] in SECOND_WORDS
    assert whole(drawn[18]["quantity"], 312, 315)
    for number in range(1, 4):
        assert whole(drawn[19][f"quantity{number}"], (1, 10, 20)[number - 1], number * 10)
    for brand in (drawn[16]["brand"], drawn[17]["brand"], *(drawn[19][f"brand{n}"] for n in (1, 2, 3))):
        assert BRAND.fullmatch(brand)
    size, what = drawn[17]["container"].split(" ")
    assert size in CONTAINERS[0] and what in CONTAINERS[1]
    for nation in (drawn[11]["nation"], drawn[20]["nation"], drawn[21]["nation"]):
        assert nation in NATIONS


@DRAWN
def test_what_belongs_together(seed, stream):
    two = parameters(7, seed, stream, 1)
    assert two["nation1"] != two["nation2"] and two["nation1"] in NATIONS and two["nation2"] in NATIONS
    share = parameters(8, seed, stream, 1)
    assert NATIONS[share["nation"]] == share["region"]
    assert all(word in of for word, of in zip(share["type"].split(" "), TYPES, strict=True))
    modes = parameters(12, seed, stream, 1)
    assert modes["shipmode1"] != modes["shipmode2"]
    assert modes["shipmode1"] in SHIP_MODES and modes["shipmode2"] in SHIP_MODES
    parts = parameters(16, seed, stream, 1)
    assert all(word in of for word, of in zip(parts["type"].split(" "), TYPES[:2], strict=True))
    sizes = {parts[f"size{number}"] for number in range(1, 9)}
    assert len(sizes) == 8 and all(whole(size, 1, 50) for size in sizes)
    codes = set(parameters(22, seed, stream, 1).values())
    assert len(codes) == 7 and all(whole(code, 10, 34) for code in codes)


@pytest.mark.parametrize(
    ("factor", "fraction"),
    [(0.01, "0.0100000000"), (1, "0.0001000000"), (100, "0.0000010000"), (10_000, "0.0000000100")],
)
def test_the_fraction_of_a_nations_stock_goes_with_the_scale(factor, fraction):
    assert parameters(11, 1, 3, factor)["fraction"] == fraction == validation(11, factor)["fraction"]


def test_validation_is_that_of_scale_factor_1():
    assert {query: validation(query, 1) for query in QUERIES} == VALIDATION
    assert VALIDATION[8] == {"nation": "BRAZIL", "region": "AMERICA", "type": "ECONOMY ANODIZED STEEL"}
    assert [VALIDATION[16][f"size{n}"] for n in range(1, 9)] == ["49", "14", "23", "45", "19", "3", "36", "9"]


@pytest.mark.parametrize("query", [0, 23, -1])
def test_unknown_queries(query):
    with pytest.raises(ValueError, match=f"no query {query}"):
        parameters(query, 1, 0, 1)
    with pytest.raises(ValueError, match=f"no query {query}"):
        validation(query, 1)

"""Parameters of the queries lie in their range, belong together, and are the same for the same seed."""

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tsql import parser

from stallmark.errors import StallmarkError
from stallmark.schema.warehouse import SHIP_MODES
from stallmark.transactions.warehouse import (
    COLOURS,
    CONTAINERS,
    FIRST_WORDS,
    MOST_STREAMS,
    NATIONS,
    POWER,
    QUERIES,
    REGIONS,
    SECOND_WORDS,
    SEGMENTS,
    TYPES,
    VALIDATION,
    names,
    order,
    parameters,
    streams_for,
    text,
    validation,
)

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


# The order of the queries in each stream, and how many streams a run has


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
    with pytest.raises(StallmarkError, match=rf"Stream {stream} does not exist: .* choose 1 to 40\.$"):
        order(stream)


@pytest.mark.parametrize(
    ("factor", "streams"),
    [(0.01, 2), (0.1, 2), (1, 2), (10, 3), (30, 4), (100, 5), (300, 6), (1_000, 7), (3_000, 8), (10_000, 9)],
)  # fmt: skip
def test_streams_by_scale(factor, streams):
    assert streams_for(factor) == streams


# The texts of the queries: twins, of which each is one statement with nothing but plain literals in it


DIALECTS = ("postgresql", "mssql")
EACH = pytest.mark.parametrize("query", QUERIES)


def code(query: int, dialect: str) -> str:
    """Without comments, in one line."""
    return " ".join(re.sub(r"--.*", "", text(query, dialect, validation(query, 1))).split())


# That each T-SQL text parses is engines/mssql/test_every_text.py's; PostgreSQL's are executed (test_oracle.py).
@pytest.mark.microsoft_parser
def test_it_parses_with_a_dop():
    assert not parser.errors(text(15, "mssql", validation(15, 1), dop=64))


@EACH
@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_begins_with_its_name_and_is_one_statement(query, dialect):
    whole = text(query, dialect, validation(query, 1))
    assert re.match(rf"-- Q{query}: [a-z -]+\n-- [A-Z].*\.\n(SELECT|WITH)\b", whole)
    assert ";" not in whole and "*/" not in whole
    assert whole.endswith("\n") and whole == whole.rstrip() + "\n"
    assert not re.search(r":[a-z]", whole.partition("\n")[2])


@EACH
def test_twins_ask_for_the_same(query):
    """The same columns from the same tables, under the same conditions, in the same order."""
    postgresql, mssql = (code(query, dialect) for dialect in DIALECTS)
    for mine, theirs in (
        (r"DATEADD\(day, -90, CAST\('1998-12-01' AS date\)\)", "DATE '1998-12-01' - INTERVAL '90' DAY"),
        (r"DATEADD\((\w+), (\d), CAST\(('[^']*') AS date\)\)", r"DATE \3 + INTERVAL '\2' \1"),
        (r"CAST\(('[^']*') AS date\)", r"DATE \1"),
        (r"\bYEAR\((\w+)\)", r"EXTRACT(YEAR FROM \1)"),
        (r"SUBSTRING\(c_phone, 1, 2\)", "SUBSTRING(c_phone FROM 1 FOR 2)"),
        (r"COUNT_BIG\(", "COUNT("),
        (r"^SELECT TOP \((\d+)\) (.*)$", r"SELECT \2 LIMIT \1"),
    ):
        mssql = re.sub(mine, theirs, mssql)
    assert mssql.replace("month", "MONTH").replace("year", "YEAR") == postgresql.replace("year", "YEAR")


def test_a_dop_is_said_to_sql_server_alone():
    asked = validation(6, 1)
    assert text(6, "mssql", asked, dop=4) == text(6, "mssql", asked) + "OPTION (MAXDOP 4)\n"
    with pytest.raises(ValueError, match=r"cannot be limited to .* in postgresql"):
        text(6, "postgresql", asked, dop=4)
    with pytest.raises(ValueError, match="be limited to 0 processors"):
        text(6, "mssql", asked, dop=0)


@pytest.mark.parametrize(("query", "dialect"), [(0, "mssql"), (23, "postgresql"), (1, "oracle"), (1, "../q01")])
def test_unknown_queries_and_dialects(query, dialect):
    with pytest.raises(ValueError, match="no query"):
        text(query, dialect, {})


def test_parameters_that_are_not_its_own():
    with pytest.raises(ValueError, match=r"q1 has the parameters \['delta'\], and not \[\]"):
        text(1, "mssql", {})
    with pytest.raises(ValueError, match="and not"):
        text(1, "mssql", {"delta": "90", "nation": "FRANCE"})


@given(value=st.text(max_size=20), query=st.sampled_from(QUERIES))
def test_only_plain_literals(value, query):
    asked = validation(query, 1) | {sorted(names(query))[0]: value}
    if re.fullmatch(r"[A-Za-z0-9 #.-]+", value) and "--" not in value:
        assert value in text(query, "postgresql", asked)
    else:
        with pytest.raises(ValueError, match="cannot be"):
            text(query, "mssql", asked)


@pytest.mark.parametrize("value", ["", "90'", "90;", "1--", ":nation", "90\n", "{x}", "%", "ü", "٣"])
def test_literals_that_are_refused(value):
    with pytest.raises(ValueError, match="delta cannot be"):
        text(1, "postgresql", {"delta": value})

"""The 33 tables of the brokerage database, as both engines get them."""

import re

import numpy as np
import pytest
import sqlalchemy as sa
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.dialects import mssql, postgresql
from sqlalchemy.schema import CreateIndex, CreateTable
from support.designs import ddl
from support.tsql import parser

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.schema import brokerage as p
from stallmark.schema import deploy
from stallmark.schema.brokerage import HIGH_CENTS, LOW_CENTS, PERIOD_S, Population, moment, price_cents, second_reached
from stallmark.schema.brokerage.tables import METADATA
from stallmark.schema.ddl import ddl_of
from stallmark.schema.placement import Design, File, Filegroup, TableGroup
from stallmark.schema.placement.mssql import place_tables

# Lookups by time, and by what a customer or a trader knows: shared/reference/brokerage.md.
COMPOSITES = {
    "trade": [("t_ca_id", "t_dts"), ("t_s_symb", "t_dts")], "holding": [("h_ca_id", "h_s_symb", "h_dts")],
    "customer": [("c_tax_id",)], "customer_account": [("ca_c_id",)],
    "watch_list": [("wl_c_id",)], "trade_request": [("tr_s_symb",)],
    "company": [("co_name",)], "security": [("s_co_id", "s_issue")], "holding_history": [("hh_t_id",)],
}  # fmt: skip


def statements(dialect: sa.Dialect) -> list[str]:
    return ddl(METADATA, Design(), dialect)


def test_tables_and_keys() -> None:
    tables = METADATA.tables.values()
    assert len(tables) == 33
    assert all(table.primary_key.columns for table in tables)
    assert sum(len(table.foreign_key_constraints) for table in tables) == 50
    assert {
        table.name: sorted(tuple(map(str, index.columns.keys())) for index in table.indexes)
        for table in tables
        if table.indexes
    } == COMPOSITES


def test_foreign_keys_refer_to_whole_keys_of_the_same_type() -> None:
    for table in METADATA.tables.values():
        for key in table.foreign_keys:
            assert list(key.column.table.primary_key.columns) == [key.column]
            assert str(key.parent.type) == str(key.column.type), key.parent
            assert not key.parent.nullable, key.parent


def test_only_what_may_be_unknown_may_be_missing() -> None:
    assert {column.name for table in METADATA.tables.values() for column in table.columns if column.nullable} == {
        "t_trade_price",
        "ni_author",
        "ad_line1",
        "ad_line2",
        "ad_ctry",
    }


@pytest.mark.parametrize("dialect", [postgresql.dialect(), mssql.dialect()], ids=["postgresql", "mssql"])
def test_statements_of_both_engines(dialect: sa.Dialect) -> None:
    names = [name for text in statements(dialect) for name in re.findall(r"(?:CONSTRAINT|INDEX) (\w+)", text)]
    assert len(names) == len(set(names)) and max(map(len, names)) <= 63
    assert not any(re.search("IDENTITY|SERIAL", text) for text in statements(dialect))


def test_large_tables_that_grow_are_rarely_vacuumed_and_small_ones_often() -> None:
    texts = statements(postgresql.dialect())
    made = {
        table.name: next(text for text in texts if f"TABLE brokerage.{table.name} " in text)
        for table in METADATA.tables.values()
    }
    rarely = {name for name, text in made.items() if "autovacuum_vacuum_insert_threshold = 1000000" in text}
    assert rarely == {"trade", "trade_history", "settlement", "cash_transaction", "holding", "holding_history"}
    assert {name for name, text in made.items() if "fillfactor = 95" in text} == {
        "trade",
        "settlement",
        "cash_transaction",
    }
    assert not any("autovacuum" in text or "fillfactor" in text for text in statements(mssql.dialect()))


def test_news_are_never_compressed() -> None:
    def news(dialect: sa.Dialect) -> str:
        copy = ddl_of(METADATA).tables.tables["brokerage.news_item"]
        return str(CreateTable(copy).compile(dialect=dialect))

    assert "ni_item VARCHAR(max) NOT NULL" in news(mssql.dialect())
    assert "ni_item TEXT STORAGE EXTERNAL NOT NULL" in news(postgresql.dialect())


def test_growing_tables_apart() -> None:
    growing = TableGroup(("growing",), "FAST", "INDEXES", "page")
    design = Design(
        (File("/data/b.mdf", "b"),),
        tuple(Filegroup(name, (File(f"/data/{name}.ndf", name),)) for name in ("FAST", "INDEXES", "SLOW")),
        tables=(growing, TableGroup(("settlement",), "SLOW")),
    )
    parts = place_tables(ddl_of(METADATA), design)
    places = {
        table.name: re.findall(r"\) ON \[(\w+)\]", str(CreateTable(table).compile(dialect=mssql.dialect())))
        for table in parts.tables.sorted_tables
    }
    assert {name for name, place in places.items() if place == ["FAST"]} == {
        "cash_transaction",
        "holding",
        "holding_history",
        "holding_summary",
        "trade",
        "trade_history",
        "trade_request",
    }
    assert [name for name, place in places.items() if place == ["SLOW"]] == ["settlement"]
    assert places["security"] == []
    index = next(item for item in parts.keys if item.name == "trade_t_ca_id_t_dts_idx")
    assert "WITH (DATA_COMPRESSION = PAGE) ON [INDEXES]" in str(CreateIndex(index).compile(dialect=mssql.dialect()))  # type: ignore[arg-type]


def test_news_are_placed_with_their_table() -> None:
    design = Design(
        (File("/data/b.mdf", "b"),),
        (Filegroup("NEWS", (File("/data/news.ndf", "news"),)),),
        tables=(TableGroup(("news_item", "news_xref"), "NEWS", compression="page"),),
    )
    tables = place_tables(ddl_of(METADATA), design).tables.tables
    news, others = (
        str(CreateTable(tables[f"brokerage.{name}"]).compile(dialect=mssql.dialect()))
        for name in ("news_item", "news_xref")
    )
    assert news.endswith(") ON [NEWS] TEXTIMAGE_ON [NEWS] WITH (DATA_COMPRESSION = PAGE)")
    assert others.endswith(") ON [NEWS] WITH (DATA_COMPRESSION = PAGE)")


@pytest.mark.microsoft_parser
def test_microsofts_own_parser_takes_every_statement() -> None:
    script = ";\n".join(statements(mssql.dialect()))
    assert not parser.errors(script)


NEWS = """
INSERT INTO brokerage.news_item
SELECT n, 'Headline', 'Summary', repeat('All the same. ', 5000), TIMESTAMP '2005-01-03', 'Source', NULL
  FROM generate_series(1, 20) n"""


def test_on_the_embedded_engine(database: EmbeddedEngine) -> None:
    parts = ddl_of(METADATA)
    deploy.create_tables(database, parts.tables)
    database.execute(NEWS)
    deploy.finish(database, parts, "", rows={}, workers=2, step=lambda *_: None)
    [(bytes_used,)] = database.query("SELECT pg_table_size('brokerage.news_item')")
    assert bytes_used > 20 * 5000 * len("All the same. ")
    kinds = """
        SELECT contype::text, count(*), bool_and(convalidated) FROM pg_constraint c
          JOIN pg_namespace n ON n.oid = connamespace
         WHERE nspname = 'brokerage' AND contype IN ('p', 'f') GROUP BY 1 ORDER BY 1"""
    assert database.query(kinds) == [("f", 50, True), ("p", 33, True)]


IMPOSSIBLE = [
    "trade_type VALUES ('TXX', 'No such type', NULL, false)",
    "taxrate VALUES ('XX1', 'More than there is', 1.5)",
    "commission_rate VALUES (1, 'TMB', 'NYSE', 100, 100, 0.5)",
    "holding VALUES (1, 1, 'A', TIMESTAMP '2005-01-03', 25, 0)",
    "holding_summary VALUES (1, 'A', 0)",
    "daily_market VALUES (DATE '2005-01-03', 'A', 25, 24, 23, 100)",
    "company_competitor VALUES (1, 1, 'AA')",
    "trade VALUES (1, TIMESTAMP '2005-01-03', 'CMPT', 'TMB', true, 'A', 0, 25, 1, 'X', 25, 0, 0, 0, true)",
]


def test_rows_that_cannot_be_and_debts_which_can(database: EmbeddedEngine) -> None:
    deploy.create_tables(database, ddl_of(METADATA).tables)
    for row in IMPOSSIBLE:
        with pytest.raises(Exception, match=r"violates (check|not-null)|null value"):
            database.execute(f"INSERT INTO brokerage.{row}")
    database.execute(
        "INSERT INTO brokerage.holding VALUES (1, 1, 'A', TIMESTAMP '2005-01-03', 25, -100);"
        "INSERT INTO brokerage.holding_summary VALUES (1, 'A', -100);"
        "INSERT INTO brokerage.settlement VALUES (1, 'Margin', DATE '2005-01-05', -2500)"
    )


# test_brokerage_population


units = st.integers(0, 9_999)


@given(units)
def test_ranks_and_customers_of_a_load_unit_are_one_to_one(unit):
    customers = p.customer_at(unit, np.arange(p.UNIT))
    assert sorted(customers) == list(range(unit * p.UNIT, (unit + 1) * p.UNIT))
    assert (p.rank_of(customers) == np.arange(p.UNIT)).all()
    busy = customers[-10:] - unit * p.UNIT  # not neighbours, so that busy customers do not share pages
    assert np.abs(np.diff(np.sort(busy))).min() > 1


@given(units)
def test_tiers_and_accounts_of_a_load_unit(unit):
    customers = unit * p.UNIT + np.arange(p.UNIT)
    tiers, accounts = p.tier_of(customers), p.accounts_of(customers)
    assert [int((tiers == t).sum()) for t in (1, 2, 3)] == [200, 600, 200]
    assert [int(accounts[tiers == t].sum()) for t in (1, 2, 3)] == [500, 3_000, 1_500]
    assert [(accounts[tiers == t].min(), accounts[tiers == t].max()) for t in (1, 2, 3)] == [(1, 4), (2, 8), (5, 10)]


def accounts_of_unit(unit: int) -> np.ndarray:
    customers = unit * p.UNIT + np.arange(p.UNIT)
    return np.concatenate(
        [p.account_key(np.full(n, c), np.arange(n)) for c, n in zip(customers, p.accounts_of(customers), strict=True)]
    )


def test_an_account_trades_1_to_18_different_securities_10_on_average():
    population = Population(5_000, 1)
    keys = np.concatenate([accounts_of_unit(unit) for unit in range(5)])
    held = p.held_by(keys)
    assert (held.min(), held.max()) == (1, 18) and abs(held.mean() - 10) < 0.1
    securities = p.security_of(keys[:, None], np.arange(p.MOST_HELD)[None, :], population.securities)
    assert (np.diff(np.sort(securities, axis=1), axis=1) > 0).all()
    assert securities.min() >= 0 and securities.max() < population.securities
    per_security = np.bincount(securities.ravel(), minlength=population.securities)
    assert per_security.std() < 0.2 * per_security.mean()


@given(units)
def test_brokers_are_of_the_load_unit_and_all_have_accounts(unit):
    brokers = p.broker_of(accounts_of_unit(unit))
    assert set(brokers) == set(range(unit * p.BROKERS, (unit + 1) * p.BROKERS))


@given(st.integers(1, 20_000), st.integers(0, 3))
def test_trade_ids_ascend_stay_in_their_load_unit_and_leave_one_in_101_out(trades, unit):
    population = Population(4_000, trades / p.TRADES_PER_DAY)
    assert population.unit_trades == trades
    keys = p.trade_key(population, unit, np.arange(trades)) - p.TRADE_KEY
    assert (np.diff(keys) > 0).all()
    assert unit * population.unit_trade_ids < keys[0] and keys[-1] <= (unit + 1) * population.unit_trade_ids
    blocks = (keys - 1 - unit * population.unit_trade_ids) // p.BURNT_EVERY
    assert (np.bincount(blocks)[:-1] == p.BURNT_EVERY - 1).all()


def test_every_security_has_a_symbol_of_its_own():
    count = 20 * p.SECURITIES
    symbols = {p.symbol(number) for number in range(count)}
    assert len(symbols) == count and max(map(len, symbols)) <= 15
    assert len({p.ticker(company) for company in range(100_000)}) == 100_000


def test_counts_follow_from_customers_and_days():
    whole = Population(5_000, 300)
    assert (whole.accounts, whole.brokers, whole.companies, whole.securities) == (25_000, 50, 2_500, 3_425)
    assert whole.trades == 5 * 17_280_000
    assert Population(1_000, 0.5).trades == 28_800
    common = p.is_preferred(np.arange(whole.securities))
    assert common.sum() == 5 * 185
    assert set(p.company_of(np.arange(whole.securities))) == set(range(whole.companies))


# test_brokerage_prices


securities = st.integers(0, 10_000_000)
seconds = st.floats(0, 9e6).map(lambda s: round(s, 3))


def price(security: int, second: float) -> int:
    return int(price_cents(np.array([security]), np.array([second]))[0])


@given(securities, seconds)
def test_a_price_goes_between_20_and_30_dollars_and_comes_back(security, second):
    assert LOW_CENTS <= price(security, second) <= HIGH_CENTS
    assert abs(price(security, second + PERIOD_S) - price(security, second)) <= 1
    over_a_period = price_cents(np.full(900, security), second + np.arange(900.0))
    assert over_a_period.min() <= LOW_CENTS + 2 and over_a_period.max() >= HIGH_CENTS - 2
    assert np.abs(np.diff(over_a_period)).max() <= 4


@given(securities, seconds, st.integers(LOW_CENTS, HIGH_CENTS), st.booleans())
def test_the_second_reached_is_the_first_with_that_price(security, second, cents, rising):
    reached = second_reached(np.array([security]), np.array([second]), np.array([cents]), np.array([rising]))[0]
    assert second <= reached <= second + PERIOD_S
    there = price(security, reached)
    assert there >= cents - 1 if rising else there <= cents + 1
    before = np.arange(second, reached - 1, 7.0)
    prices = price_cents(np.full(len(before), security), before)
    assert (prices < cents).all() if rising else (prices > cents).all()


def test_trading_days_are_weekdays_from_nine_to_five():
    day = 28_800
    at = moment(np.array([0, 0.0015, day - 1, day, 5 * day, 260 * day + 60.25]))
    assert at.astype(str).tolist() == [
        "2005-01-03T09:00:00.000",
        "2005-01-03T09:00:00.002",
        "2005-01-03T16:59:59.000",
        "2005-01-04T09:00:00.000",
        "2005-01-10T09:00:00.000",
        "2006-01-02T09:01:00.250",
    ]


def test_phases_differ():
    prices = price_cents(np.arange(685), np.zeros(685))
    assert prices.mean() == pytest.approx((LOW_CENTS + HIGH_CENTS) / 2, abs=50)
    assert prices.std() == pytest.approx(1_000 / 12**0.5, abs=50)

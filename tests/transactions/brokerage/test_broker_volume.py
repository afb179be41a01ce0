"""Broker-Volume on every engine: the worth of the orders that wait, by broker."""

import random
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from support.answers import values
from support.undone import undone

from stallmark.engines.base import Engine, Session
from stallmark.errors import CallFailed
from stallmark.schema.brokerage import MOST_ACCOUNTS, customer_key, tax_id
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.brokerage.read_only import (
    BrokerVolume,
    CustomerPosition,
    Detail,
    Position,
    SecurityDetail,
    Volume,
)
from stallmark.transactions.workload import Outcome

WAIT = "FROM brokerage.trade JOIN brokerage.customer_account ON ca_id = t_ca_id WHERE t_id < 200000000000300"
ALL_WAIT = (
    "INSERT INTO brokerage.trade_request (tr_t_id, tr_tt_id, tr_s_symb, tr_qty, tr_bid_price, tr_b_id) "
    f"SELECT t_id, 'TLB', t_s_symb, t_qty, t_bid_price, ca_b_id {WAIT}"
)


@pytest.fixture
def waiting(engine: Engine) -> list[tuple]:
    """Return what `ALL_WAIT` has wait: (name of broker, name of sector, quantity, price), each table read alone."""
    sectors = dict(engine.query("SELECT sc_id, sc_name FROM brokerage.sector"))
    industries = dict(engine.query("SELECT in_id, in_sc_id FROM brokerage.industry"))
    companies = dict(engine.query("SELECT co_id, co_in_id FROM brokerage.company"))
    securities = dict(engine.query("SELECT s_symb, s_co_id FROM brokerage.security"))
    brokers = dict(engine.query("SELECT b_id, b_name FROM brokerage.broker"))
    return [
        (brokers[broker], sectors[industries[companies[securities[symbol]]]], quantity, price)
        for broker, symbol, quantity, price in engine.query(f"SELECT ca_b_id, t_s_symb, t_qty, t_bid_price {WAIT}")
    ]


def expected(waiting: list[tuple], brokers: list[str], sector: str) -> list[tuple[str, Decimal]]:
    volumes: Counter = Counter()
    for broker, of_sector, quantity, price in waiting:
        if broker in brokers and of_sector == sector:
            volumes[broker] += quantity * price
    return volumes.most_common()


def test_the_worth_of_what_waits(session: Session, context: Context, waiting: list[tuple]) -> None:
    assert {sector for _, sector, *_ in waiting} == set(context.sector_names)
    with undone(session, "DELETE FROM brokerage.trade_request", ALL_WAIT):
        for sector in context.sector_names[:4]:
            for brokers in (context.broker_names, context.broker_names[2:5]):
                answer = session.call("broker_volume", (",".join(brokers), sector))
                volumes = expected(waiting, brokers, sector)
                assert {(name, str(volume)) for name, volume in answer} == {(n, str(v)) for n, v in volumes}
                assert values(answer)[1::2] == [str(volume) for _, volume in volumes]
                assert volumes


def test_nothing_waits(session: Session, context: Context, rng: random.Random) -> None:
    volume = BrokerVolume(context)
    with undone(session, "DELETE FROM brokerage.trade_request"):
        assert session.call("broker_volume", volume.inputs(rng)) == []


def test_as_many_brokers_as_there_are(context: Context, rng: random.Random) -> None:
    volume = BrokerVolume(context)
    drawn = [volume.inputs(rng) for _ in range(300)]
    assert len(context.broker_names) == 10
    assert all(sorted(each.brokers.split(",")) == sorted(context.broker_names) for each in drawn)
    assert {each.sector for each in drawn} == set(context.sector_names)


def test_twenty_to_forty_of_many_brokers(context: Context, rng: random.Random) -> None:
    names = [f"Broker {number}" for number in range(100)]
    volume = BrokerVolume(replace(context, broker_names=names))
    drawn: list[Volume] = [volume.inputs(rng) for _ in range(4_000)]
    chosen = [each.brokers.split(",") for each in drawn]
    counts = Counter(map(len, chosen))
    assert set(counts) == set(range(20, 41)) and min(counts.values()) > 120
    assert all(len(set(each)) == len(each) for each in chosen)
    each_broker = Counter(name for each in chosen for name in each)
    assert set(each_broker) == set(names)
    assert all(count / 4_000 == pytest.approx(0.3, abs=0.05) for count in each_broker.values())


# Customer-Position on every engine: whom it asks for, what it tells, and how often the history


ACCOUNTS, HISTORY = CustomerPosition.frames


def test_inputs(context: Context, rng: random.Random) -> None:
    position = CustomerPosition(context)
    drawn = [position.inputs(rng) for _ in range(4_000)]
    keys = {customer_key(number): tax_id(number) for number in range(context.population.customers)}
    assert all((by.customer is None) != (by.tax_id is None) for by in drawn)
    assert {by.customer for by in drawn} - {None} <= keys.keys()
    assert {by.tax_id for by in drawn} - {None} <= set(keys.values())
    assert {by.history_of for by in drawn} == {None, *range(MOST_ACCOUNTS)}
    kinds = Counter((by.customer is None, by.history_of is None) for by in drawn)
    assert all(count / len(drawn) == pytest.approx(0.25, abs=0.03) for count in kinds.values())


def test_accounts_by_what_they_are_worth(engine: Engine, session: Session) -> None:
    [(customer, tax)] = engine.query(
        "SELECT c_id, c_tax_id FROM brokerage.customer JOIN brokerage.customer_account ON ca_c_id = c_id "
        "JOIN brokerage.holding_summary ON hs_ca_id = ca_id WHERE c_tier = 3 "
        "GROUP BY c_id, c_tax_id ORDER BY COUNT(*) DESC, c_id OFFSET 0 ROWS FETCH FIRST 1 ROWS ONLY"
    )
    worth: defaultdict[int, Decimal] = defaultdict(lambda: Decimal("0.00"))
    for account, quantity, price in engine.query(
        "SELECT hs_ca_id, hs_qty, lt_price FROM brokerage.holding_summary "
        "JOIN brokerage.last_trade ON lt_s_symb = hs_s_symb "
        f"JOIN brokerage.customer_account ON ca_id = hs_ca_id WHERE ca_c_id = {customer}"
    ):
        worth[account] += quantity * price
    expected = [
        (account, balance, worth[account])
        for account, balance in engine.query(
            f"SELECT ca_id, ca_bal FROM brokerage.customer_account WHERE ca_c_id = {customer}"
        )
    ]
    expected.sort(key=lambda row: (row[2], row[0]))
    assert len(expected) > 4 and len(set(worth.values())) > 1
    [about] = engine.query(
        "SELECT c_id, c_st_id, c_l_name, c_f_name, c_m_name, c_gndr, c_tier, c_dob, c_ad_id, "
        "c_ctry_1, c_area_1, c_local_1, c_ext_1, c_ctry_2, c_area_2, c_local_2, c_ext_2, "
        "c_ctry_3, c_area_3, c_local_3, c_ext_3, c_email_1, c_email_2 "
        f"FROM brokerage.customer WHERE c_id = {customer}"
    )
    rows = values((*row, *about) for row in expected)
    assert values(session.call(ACCOUNTS, (customer, None))) == rows
    assert values(session.call(ACCOUNTS, (None, tax))) == rows


def test_states_of_the_ten_latest_trades(engine: Engine, session: Session, busy_account: int) -> None:
    trades = engine.query(f"SELECT t_id, t_s_symb, t_qty, t_dts FROM brokerage.trade WHERE t_ca_id = {busy_account}")
    names = dict(engine.query("SELECT st_id, st_name FROM brokerage.status_type"))
    latest = {trade for trade, *_ in sorted(trades, key=lambda row: (row[3], row[0]), reverse=True)[:10]}
    states = engine.query(
        f"SELECT th_t_id, th_st_id, th_dts FROM brokerage.trade_history WHERE th_t_id IN ({str(latest)[1:-1]})"
    )
    about = {trade: (symbol, quantity) for trade, symbol, quantity, _ in trades}
    expected = [(trade, *about[trade], names[state], moment, state) for trade, state, moment in states]
    expected.sort(key=lambda row: (-row[4].timestamp(), row[0], row[5]))
    assert 20 < len(expected) <= 30 < len(trades)
    assert values(session.call(HISTORY, (busy_account,))) == values(row[:5] for row in expected)


@pytest.mark.parametrize("history_of", [None, 0, MOST_ACCOUNTS - 1])
def test_it_commits(session: Session, context: Context, history_of: int | None) -> None:
    position = CustomerPosition(context)
    for customer in range(5):
        by_key = Position(customer_key(customer), None, history_of)
        assert position.execute(session, by_key) is Outcome.COMMITTED
        assert position.execute(session, Position(None, tax_id(customer), history_of)) is Outcome.COMMITTED
    for nobody in (Position(1, None, history_of), Position(None, "nobody's", history_of)):
        with pytest.raises(CallFailed, match=r"customer .* does not exist: run `stallmark check`"):
            position.execute(session, nobody)
    assert position.execute(session, by_key) is Outcome.COMMITTED


def test_history_is_of_the_account_that_was_drawn(
    session: Session, context: Context, busy_account: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    customer = customer_of(busy_account)
    accounts = [row[0] for row in session.call(ACCOUNTS, (customer, None))]
    asked = []
    finish = session.finish

    def noted(name: str, parameters: tuple) -> None:
        asked.append((name, *parameters))
        finish(name, parameters)

    monkeypatch.setattr(session, "finish", noted)
    for number in range(MOST_ACCOUNTS):
        CustomerPosition(context).execute(session, Position(customer, None, number))
    assert asked == [(HISTORY, accounts[number % len(accounts)]) for number in range(MOST_ACCOUNTS)]


def customer_of(account: int) -> int:
    return (account - 1) // MOST_ACCOUNTS + 1


# Security-Detail on every engine: all that the tables say of a security, once with the articles


def told(cursor: Any, asked: Detail) -> list[tuple]:
    """Read the tables, each by itself."""

    def rows(columns: str, table: str, where: str) -> list[tuple]:
        cursor.execute(f"SELECT {columns} FROM brokerage.{table} WHERE {where}")
        return [tuple(row) for row in cursor.fetchall()]

    def address(key: int) -> tuple:
        [(line1, line2, code, country)] = rows("ad_line1, ad_line2, ad_zc_code, ad_ctry", "address", f"ad_id = {key}")
        [(town, division)] = rows("zc_town, zc_div", "zip_code", f"zc_code = '{code}'")
        return line1, line2, code, town, division, country

    [(company, exchange)] = rows("s_co_id, s_ex_id", "security", f"s_symb = '{asked.symbol}'")
    [security] = rows(
        "s_name, s_num_out, s_start_date, s_exch_date, s_pe, s_52wk_high, s_52wk_high_date, s_52wk_low, "
        "s_52wk_low_date, s_dividend, s_yield",
        "security",
        f"s_symb = '{asked.symbol}'",
    )
    [(*of_company, company_lives)] = rows(
        "co_id, co_name, co_st_id, co_sp_rate, co_ceo, co_desc, co_open_date, co_ad_id", "company", f"co_id = {company}"
    )
    [(*of_exchange, exchange_lives)] = rows(
        "ex_name, ex_desc, ex_num_symb, ex_open, ex_close, ex_ad_id", "exchange", f"ex_id = '{exchange}'"
    )
    [last] = rows("lt_price, lt_open_price, lt_vol", "last_trade", f"lt_s_symb = '{asked.symbol}'")
    rivals = [
        rows("co_name", "company", f"co_id = {rival}")[0] + rows("in_name", "industry", f"in_id = '{industry}'")[0]
        for rival, industry in rows(
            "cp_comp_co_id, cp_in_id", "company_competitor", f"cp_co_id = {company} ORDER BY cp_comp_co_id"
        )
    ]
    quarters = rows("*", "financial", f"fi_co_id = {company} ORDER BY fi_year, fi_qtr")
    days = rows("*", "daily_market", f"dm_s_symb = '{asked.symbol}' AND dm_date >= '{asked.since}' ORDER BY dm_date")[
        : asked.days
    ]
    article = "ni_item" if asked.articles else "NULL"
    news = [
        rows(f"ni_dts, ni_source, ni_author, ni_headline, ni_summary, {article}", "news_item", f"ni_id = {item}")[0]
        for (item,) in rows("nx_ni_id", "news_xref", f"nx_co_id = {company} ORDER BY nx_ni_id")
    ]
    assert (len(rivals), len(quarters), len(days), len(news)) == (3, 4, asked.days, 2)
    first = *security, *of_company, *address(company_lives), *of_exchange, *address(exchange_lives), *last
    return [first, *rivals, *quarters, *days, *news]


@pytest.mark.parametrize("articles", [True, False])
@pytest.mark.parametrize(("security", "since", "days"), [(7, "2004-11-17", 20), (600, "2004-12-03", 5)])
def test_what_the_tables_say(
    engine: Engine, session: Session, context: Context, security: int, since: str, days: int, articles: bool
) -> None:
    asked = Detail(context.symbols[security], since, days, articles)
    assert SecurityDetail(context).execute(session, asked) is Outcome.COMMITTED
    answer = values(session.call("security_detail", asked))
    with engine.cursor() as cursor:
        assert answer == values(told(cursor, asked))
    longest = max(len(text or "") for text in answer)
    assert (longest > 300) is articles


def test_a_security_that_is_not_there(session: Session, context: Context) -> None:
    with pytest.raises(CallFailed, match="security NOSUCH does not exist: run `stallmark check`"):
        SecurityDetail(context).execute(session, Detail("NOSUCH", "2004-11-17", 20, False))


def test_what_is_drawn(engine: Engine, context: Context, rng: random.Random) -> None:
    detail, draws = SecurityDetail(context), 40_000
    drawn = [detail.inputs(rng) for _ in range(draws)]
    assert {each.symbol for each in drawn} == set(context.symbols)
    assert {each.days for each in drawn} == set(range(5, 21))
    assert sum(each.articles for each in drawn) / draws == pytest.approx(0.01, abs=0.002)
    dates = {each.since for each in drawn}
    first, last = date.fromisoformat(min(dates)), date.fromisoformat(max(dates))
    assert {(first + timedelta(day)).isoformat() for day in range((last - first).days + 1)} == dates
    [(oldest,)] = engine.query("SELECT MIN(dm_date) FROM brokerage.daily_market")
    [(follow,)] = engine.query(f"SELECT COUNT(DISTINCT dm_date) FROM brokerage.daily_market WHERE dm_date >= '{last}'")
    assert oldest == first and follow in (20, 21)

"""Customer-Position on every engine: whom it asks for, what it tells, and how often the history."""

import random
from collections import Counter, defaultdict
from decimal import Decimal

import pytest
from support.answers import values

from stallmark.engines.base import Engine, Session
from stallmark.errors import CallFailed
from stallmark.schema.brokerage.population import MOST_ACCOUNTS, customer_key, tax_id
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.brokerage.customer_position import CustomerPosition, Position
from stallmark.transactions.workload import Outcome

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
        with pytest.raises(CallFailed, match=r"there is no customer .*: run `stallmark check`"):
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

"""Data-Maintenance: each table in turn is tweaked, all conditions hold, and the same tweak again undoes it."""

import random
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
import sqlalchemy as sa
from support.brokerage_orders import PLACED, SUBMITTED, leave

from stallmark.engines.base import Engine, Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.schema.brokerage.tables import METADATA
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.brokerage.corrections import TABLES, WATCH_LISTS, Correction, DataMaintenance, TradeCleanup
from stallmark.transactions.workload import Outcome

# How many rows one of them changes, where that is always the same.
ROWS = {
    "address": 1, "company": 1, "customer": 1, "customer_taxrate": 2, "exchange": 1, "financial": 4, "news_item": 2,
    "security": 1, "taxrate": 2, "watch_item": 1,
}  # fmt: skip


def drawn(context: Context, rng: random.Random, table: str) -> Correction:
    maintenance = DataMaintenance(context)
    return next(inputs for inputs in iter(lambda: maintenance.inputs(rng), None) if inputs.table == table)


def rows(engine: Engine, table: str) -> set[tuple]:
    """Without the bodies of articles."""
    columns = [each for each in METADATA.tables[f"brokerage.{table}"].columns if each.name != "ni_item"]
    chosen = ", ".join(f"RTRIM({c.name})" if isinstance(c.type, sa.CHAR) else c.name for c in columns)
    return {tuple(row) for row in engine.query(f"SELECT {chosen} FROM brokerage.{table}")}


@pytest.mark.parametrize("table", [table for table in TABLES if table != "daily_market"])
def test_rows_change_and_the_same_tweak_again_undoes_it(
    engine: Engine, context: Context, session: Session, rng: random.Random, table: str
) -> None:
    inputs = drawn(context, rng, table)
    before = rows(engine, table)
    [(changed,)] = session.call("data_maintenance_tweak", inputs)
    after = rows(engine, table)
    assert DataMaintenance(context).execute(session, inputs) is Outcome.COMMITTED
    assert rows(engine, table) == before
    assert changed == len(before - after) == len(after - before) > 0
    assert changed == ROWS.get(table, changed)


def test_days_of_the_market_change_and_are_as_before(
    engine: Engine, context: Context, session: Session, rng: random.Random
) -> None:
    def volumes() -> dict[Any, int]:
        days = f"SELECT dm_date, dm_vol FROM brokerage.daily_market WHERE dm_s_symb = '{inputs.symbol}'"
        return dict(map(tuple, engine.query(days)))

    inputs = drawn(context, rng, "daily_market")
    before = volumes()
    [(changed,)] = session.call("data_maintenance_tweak", inputs)
    after = volumes()
    assert DataMaintenance(context).execute(session, inputs) is Outcome.COMMITTED
    assert volumes() == before
    touched = {day for day in before if before[day] != after[day]}
    assert touched == {day for day in before if day.day == inputs.day}
    assert {abs(before[day] - after[day]) for day in touched} == {1}
    assert changed == len(touched)
    assert 1 <= changed <= 2  # of two months


def test_all_conditions_hold_when_everything_is_tweaked(
    engine: Engine, context: Context, session: Session, rng: random.Random, broken: Callable
) -> None:
    maintenance = DataMaintenance(context)
    tweaks = [maintenance.inputs(rng) for _ in range(3 * len(TABLES))]
    for inputs in tweaks:
        maintenance.execute(session, inputs)
    found = broken()
    for inputs in reversed(tweaks):
        maintenance.execute(session, inputs)
    assert found == []
    assert broken() == []


def test_sessions_go_through_the_tables_together(context: Context, rng: random.Random) -> None:
    sessions = [DataMaintenance(context) for _ in range(3)]
    tables = [rng.choice(sessions).inputs(rng).table for _ in range(3 * len(TABLES))]
    start = TABLES.index(tables[0])
    assert tables == [TABLES[(start + n) % len(TABLES)] for n in range(3 * len(TABLES))]


# Where what is drawn is a key: its column, and of which rows it is the first and the last.
KEYS = {
    "address": ("ad_id", "WHERE ad_id IN (SELECT c_ad_id FROM brokerage.customer)"), "company": ("co_id", ""),
    "customer": ("c_id", ""), "customer_taxrate": ("cx_c_id", ""), "financial": ("fi_co_id", ""),
    "news_item": ("nx_co_id", ""), "taxrate": ("cx_c_id", ""), "watch_item": ("wi_wl_id", ""),
}  # fmt: skip
FOUND_IN = {"news_item": "news_xref", "taxrate": "customer_taxrate"}


@pytest.mark.parametrize("last", [False, True])
def test_the_first_and_the_last_can_be_drawn(engine: Engine, context: Context, last: bool) -> None:
    class Edge(random.Random):
        def randrange(self, end: int) -> int:  # type: ignore[override]
            return end - 1 if last else 0

        def choice(self, of: Any) -> Any:
            return of[-1 if last else 0]

    maintenance = DataMaintenance(context)
    for inputs in [maintenance.inputs(Edge()) for _ in TABLES]:
        if inputs.table in KEYS:
            column, where = KEYS[inputs.table]
            found_in = FOUND_IN.get(inputs.table, inputs.table)
            [(least, most)] = engine.query(f"SELECT MIN({column}), MAX({column}) FROM brokerage.{found_in} {where}")
            if inputs.table == "watch_item":
                most -= WATCH_LISTS - 1
            assert inputs.key == (most if last else least), inputs
        elif inputs.table != "account_permission":
            assert inputs.symbol == context.symbols[-1 if last else 0]
            assert inputs.day == ((28 if last else 1) if inputs.table == "daily_market" else None)


def test_each_window_of_watch_lists_has_what_can_be_exchanged(engine: Engine, context: Context) -> None:
    with_one = {
        customer
        for (customer,) in engine.query(
            "SELECT DISTINCT i.wi_wl_id FROM brokerage.watch_item i "
            "JOIN brokerage.security s ON s.s_symb = i.wi_s_symb "
            "JOIN brokerage.security o ON o.s_co_id = s.s_co_id AND o.s_symb <> s.s_symb "
            "LEFT JOIN brokerage.watch_item w ON w.wi_wl_id = i.wi_wl_id AND w.wi_s_symb = o.s_symb "
            "WHERE w.wi_wl_id IS NULL"
        )
    }
    first = min(with_one) // 1_000 * 1_000 + 1
    for start in range(first, first + context.population.customers - WATCH_LISTS + 1):
        assert any(customer in with_one for customer in range(start, start + WATCH_LISTS))


def test_what_is_not_there(context: Context, session: Session) -> None:
    with pytest.raises(CallFailed, match="nothing to maintain") as failure:
        DataMaintenance(context).execute(session, Correction("company", key=1))
    assert failure.value.kind is ErrorClass.OTHER
    with pytest.raises(CallFailed) as failure:
        DataMaintenance(context).execute(session, Correction("trade", key=1))
    assert failure.value.kind is ErrorClass.OTHER


# Trade-Cleanup: what an earlier run has left over is cancelled, and nothing else is touched


NOW = datetime(2026, 11, 23, 10)


def history(engine: Engine, trade: int) -> set[tuple[str, datetime]]:
    rows = engine.query(f"SELECT th_st_id, th_dts FROM brokerage.trade_history WHERE th_t_id = {trade}")
    return {(state, moment) for state, moment in rows}


@pytest.fixture
def left(engine: Engine, context: Context, untouched: None) -> list[int]:
    """The trades that `leave` has left: two that wait, one that was triggered, one for the market."""
    trades = [context.next_trade_id() for _ in range(4)]
    for trade, (type_, status) in zip(
        trades, [("TLB", "PNDG"), ("TSL", "PNDG"), ("TLS", "SBMT"), ("TMB", "SBMT")], strict=True
    ):
        leave(engine, trade, type_, status)
    return trades


def test_the_first_trade_of_a_run_follows_the_last_that_was_loaded(engine: Engine, context: Context) -> None:
    [(last,)] = engine.query("SELECT MAX(t_id) FROM brokerage.trade WHERE t_dts < '2026-01-01'")
    assert TradeCleanup(context).inputs(random.Random(1)) == (last + 1,)


def test_what_is_left_over_is_cancelled(
    engine: Engine, context: Context, session: Session, left: list[int], broken: Callable
) -> None:
    assert broken() == []
    cleanup = TradeCleanup(context)
    assert cleanup.execute(session, cleanup.inputs(random.Random(1))) is Outcome.COMMITTED

    rows = engine.query(f"SELECT t_id, t_st_id, t_dts FROM brokerage.trade WHERE t_id >= {left[0]} ORDER BY t_id")
    assert [tuple(row) for row in rows] == [(trade, "CNCL", NOW) for trade in left]
    placed, submitted = datetime.fromisoformat(PLACED), datetime.fromisoformat(SUBMITTED)
    ended = {("SBMT", NOW), ("CNCL", NOW)}
    assert history(engine, left[0]) == history(engine, left[1]) == {("PNDG", placed)} | ended
    assert history(engine, left[2]) == {("PNDG", placed), ("SBMT", submitted), ("CNCL", NOW)}
    assert history(engine, left[3]) == {("SBMT", placed), ("CNCL", NOW)}
    assert engine.query("SELECT COUNT(*) FROM brokerage.trade_request")[0][0] == 0
    [(loaded,)] = engine.query("SELECT COUNT(*) FROM brokerage.trade WHERE t_st_id = 'CMPT'")
    assert loaded == context.population.trades
    assert broken() == []


def test_it_says_how_many_there_were_from_the_first_on(
    engine: Engine, context: Context, session: Session, left: list[int]
) -> None:
    def cancel(first: int) -> list[tuple]:
        return [tuple(row) for row in session.call("trade_cleanup_cancel", (first, "2026-11-23T10:00:00.000"))]

    assert cancel(left[0]) == [(2, 2)]
    assert cancel(left[0]) == [(0, 0)]
    leave(engine, before := context.next_trade_id(), "TMS", "SBMT")
    assert cancel(before + 1) == [(0, 0)]
    assert engine.query(f"SELECT t_st_id FROM brokerage.trade WHERE t_id = {before}") == [("SBMT",)]

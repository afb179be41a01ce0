"""Security-Detail on every engine: all that the tables say of a security, once with the articles."""

import random
from datetime import date, timedelta
from typing import Any

import pytest
from support.answers import values

from stallmark.engines.base import Engine, Session
from stallmark.errors import CallFailed
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.brokerage.security_detail import Detail, SecurityDetail
from stallmark.transactions.workload import Outcome


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
    with pytest.raises(CallFailed, match="there is no security NOSUCH: run `stallmark check`"):
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

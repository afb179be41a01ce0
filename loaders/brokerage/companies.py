"""Companies with their addresses, competitors and figures, news about them, and the securities that they issue, with
their prices before trading begins."""

from collections.abc import Iterator
from dataclasses import dataclass
from string import ascii_uppercase

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.loaders import Piece, strings
from stallmark.loaders.brokerage.counts import COMPETITORS, NEWS, WEEK_DAYS
from stallmark.loaders.brokerage.fixed import EXCHANGE_IDS, INDUSTRIES, addresses, codes, exchange_of, people
from stallmark.loaders.brokerage.simulation import LONGEST_S
from stallmark.schema import words
from stallmark.schema.brokerage import (
    DAY_S,
    HIGH_CENTS,
    KEY,
    LOW_CENTS,
    QUARTERS,
    TICKER_LETTERS,
    Population,
    address_key_of_company,
    company_key,
    company_of,
    is_preferred,
    moment,
    price_cents,
    ticker_numbers,
)
from stallmark.schema.draw import Ints, Numbers, bits, whole
from stallmark.schema.words import chosen, decimals, prose, short

# The symbols of many securities at once: those of `schema.brokerage.symbol`.


_FIFTH = ("", *ascii_uppercase[1:])  # before the four, where so many companies need one


def symbols(security: Ints) -> pa.StringArray:
    """Return the symbols of securities, for fewer than 26**5 companies."""
    fifth, four = ticker_numbers(company_of(security))
    places = 26 ** np.arange(TICKER_LETTERS - 1, -1, -1)
    letters = four[:, np.newaxis] // places % 26 + ord("A")
    kind = chosen(("", ".PRA"), is_preferred(security).astype(np.int64))
    return pc.binary_join_element_wise(chosen(_FIFTH, fifth), strings(letters.astype(np.uint8)), kind, "")


# Prices of securities on the weekdays before trading begins, of five years at most, and at the end of trading.

_CALENDAR = np.arange("2000-01-03", "2005-01-01", dtype="datetime64[D]")
_DAYS = _CALENDAR[np.is_busday(_CALENDAR)]
YEAR = 261  # days of the last year
_MOST_VOLUME = 100_000


@dataclass(frozen=True)
class Days:
    """Daily prices and volumes of securities: arrays of shape (securities, days), prices in cents."""

    date: npt.NDArray[np.datetime64]
    security: Ints
    close: Ints
    high: Ints
    low: Ints
    volume: Ints

    @classmethod
    def for_securities(cls, seed: int, population: Population, security: Ints) -> "Days":
        day = np.arange(len(_DAYS) - WEEK_DAYS * population.market_weeks, len(_DAYS))
        draws = bits(seed, "daily market", security[:, None] * len(_DAYS) + day[None, :])
        close = LOW_CENTS + _below(HIGH_CENTS - LOW_CENTS + 1, draws, 0)
        high = close + _below(HIGH_CENTS - close + 1, draws, 16)
        low = close - _below(close - LOW_CENTS + 1, draws, 32)
        return cls(_DAYS[day], security, close, high, low, 1 + _below(_MOST_VOLUME, draws, 48))


def daily_market(days: Days) -> pa.Table:
    securities = len(days.security)
    return pa.table(
        {
            "dm_date": np.tile(days.date, securities),
            "dm_s_symb": chosen(symbols(days.security), np.repeat(np.arange(securities), len(days.date))),
            "dm_close": decimals(days.close.ravel(), 8),
            "dm_high": decimals(days.high.ravel(), 8),
            "dm_low": decimals(days.low.ravel(), 8),
            "dm_vol": days.volume.ravel(),
        }
    )


def last_trade(population: Population, security: Ints) -> pa.Table:
    """Return the latest completion time of an order of the initial trade days."""
    end = np.full(len(security), population.days * DAY_S + LONGEST_S)
    opening = end // DAY_S * DAY_S
    return pa.table(
        {
            "lt_s_symb": symbols(security),
            "lt_dts": moment(end),
            "lt_price": decimals(price_cents(security, end), 8),
            "lt_open_price": decimals(price_cents(security, opening), 8),
            "lt_vol": np.zeros(len(security), np.int64),
        }
    )


def _below(limit: int | Ints, draws: Numbers, shift: int) -> Ints:
    """Return integers from 0 to `limit` - 1, from 16 of the bits."""
    sixteen = ((draws >> np.uint64(shift)) & np.uint64(0xFFFF)).astype(np.int64)
    return sixteen * limit >> 16


# Companies with their addresses, competitors and figures, and the securities they issue.


_FIRST_YEAR = 2000  # year of the first figures
_RATINGS = ("AAA", "AA+", "AA", "AA-", "A+", "A", "A-", "BBB+", "BBB", "BBB-", "BB+", "BB")
_FIRST_FOUNDED, _YEARS_OF_FOUNDING = np.datetime64("1850-01-01"), 145
_SPREAD = 2_147_483_647  # a prime, so prime to the number of names there are


def companies(seed: int, population: Population, company: Ints) -> Iterator[Piece]:
    """Return all rows of some companies, except securities and news."""
    address_key = address_key_of_company(company)
    yield "brokerage.address", addresses(seed, "company", company, address_key)
    yield "brokerage.company", _companies(seed, company, address_key)
    yield "brokerage.company_competitor", _competitors(seed, population, company)
    yield "brokerage.financial", _financials(seed, population, company)


def securities(seed: int, days: Days) -> pa.Table:
    """Return rows of the table `security`, for the securities of `days`."""
    security = days.security
    company, preferred = company_of(security), is_preferred(security)
    high, low = days.high[:, -YEAR:], days.low[:, -YEAR:]
    high_day, low_day = high.argmax(axis=1), low.argmin(axis=1)
    highest, lowest = high[np.arange(len(high)), high_day], low[np.arange(len(low)), low_day]
    dividend = whole(seed, "dividend", security, 200)
    start = _founded(seed, company) + whole(seed, "days to the first share", company, 1_000)
    return pa.table(
        {
            "s_symb": symbols(security),
            "s_issue": chosen(("COMMON", "PREF_A"), preferred.astype(np.int64)),
            "s_st_id": pa.repeat("ACTV", len(security)),
            "s_name": security_names(seed, security),
            "s_ex_id": chosen(EXCHANGE_IDS, exchange_of(security)),
            "s_co_id": company_key(company),
            "s_num_out": np.where(preferred, _shares(seed, company) // 10, _shares(seed, company)),
            "s_start_date": start,
            "s_exch_date": start + whole(seed, "days to the exchange", security, 700),
            "s_pe": decimals(100 + whole(seed, "price to earnings", security, 5_000), 10),
            "s_52wk_high": decimals(highest, 8),
            "s_52wk_high_date": days.date[-YEAR:][high_day],
            "s_52wk_low": decimals(lowest, 8),
            "s_52wk_low_date": days.date[-YEAR:][low_day],
            "s_dividend": decimals(dividend, 10),
            "s_yield": decimals(dividend * 10_000 // days.close[:, -1], 5),
        }
    )


def industry_of(company: Ints) -> Ints:
    """Return the industry of a company: companies take the industries in turn."""
    return company % INDUSTRIES


def company_names(seed: int, company: Ints) -> pa.StringArray:
    """Return two family names and the legal form, another combination for every company."""
    families, forms = words.last_names(), words.company_suffixes()
    combinations = len(families) ** 2 * len(forms)
    first_combination = whole(seed, "first company's name", np.zeros(1, np.int64), combinations)
    number, form = np.divmod((first_combination + company * _SPREAD) % combinations, len(forms))
    first, other = np.divmod(number, len(families))
    return pc.binary_join_element_wise(chosen(families, first), chosen(families, other), chosen(forms, form), " ")


def security_names(seed: int, security: Ints) -> pa.StringArray:
    kind = chosen(("Common Stock", "Preferred A"), is_preferred(security).astype(np.int64))
    return pc.binary_join_element_wise(company_names(seed, company_of(security)), kind, " ")


def _companies(seed: int, company: Ints, address_key: Ints) -> pa.Table:
    phrases = 2 + whole(seed, "length of description", company, 3)
    return pa.table(
        {
            "co_id": company_key(company),
            "co_st_id": pa.repeat("ACTV", len(company)),
            "co_name": company_names(seed, company),
            "co_in_id": chosen(codes(INDUSTRIES), industry_of(company)),
            "co_sp_rate": chosen(_RATINGS, whole(seed, "rating", company, len(_RATINGS))),
            "co_ceo": people(seed, "CEO", company),
            "co_ad_id": address_key,
            "co_desc": short(seed, "description", company, phrases),
            "co_open_date": _founded(seed, company),
        }
    )


def _competitors(seed: int, population: Population, company: Ints) -> pa.Table:
    """Return others of the same industry, from the whole population: they follow the company in its industry at
    distances of which one is in each third of the way round. There are at least four companies in an industry."""
    industry, place = industry_of(company)[:, None], (company // INDUSTRIES)[:, None]
    others = (population.companies - industry + INDUSTRIES - 1) // INDUSTRIES - 1
    number = np.arange(COMPETITORS)[None, :]
    start, end = others * number // COMPETITORS, others * (number + 1) // COMPETITORS
    distance = 1 + start + whole(seed, "competitor", company[:, None] * COMPETITORS + number, end - start)
    competitor = (place + distance) % (others + 1) * INDUSTRIES + industry
    return pa.table(
        {
            "cp_co_id": np.repeat(company_key(company), COMPETITORS),
            "cp_comp_co_id": company_key(competitor.ravel()),
            "cp_in_id": chosen(codes(INDUSTRIES), np.repeat(industry_of(company), COMPETITORS)),
        }
    )


def _financials(seed: int, population: Population, company: Ints) -> pa.Table:
    """Return the figures of the last quarters of five years."""
    quarter = np.tile(np.arange(QUARTERS - population.quarters, QUARTERS), len(company))
    owner = np.repeat(company, population.quarters)
    number = owner * QUARTERS + quarter
    year, of_year = np.divmod(quarter, 4)
    shares = _shares(seed, owner)
    diluted = shares + shares // 10
    # Revenue from 1 million to 1 billion dollars; what is in the balance sheet follows in steps of a percent.
    revenue = (1_000 + whole(seed, "revenue", number, 999_000)) * 100_000 + whole(seed, "cents", number, 100_000)
    margin = whole(seed, "margin", number, 3_000) - 500  # hundredths of a percent
    earned = revenue * margin // 10_000
    assets = revenue * (100 + whole(seed, "assets", number, 400)) // 100
    return pa.table(
        {
            "fi_co_id": company_key(owner),
            "fi_year": (_FIRST_YEAR + year).astype(np.int32),
            "fi_qtr": (1 + of_year).astype(np.int16),
            "fi_qtr_start_date": (np.datetime64(f"{_FIRST_YEAR}-01") + 3 * quarter).astype("datetime64[D]"),
            "fi_revenue": decimals(revenue, 15),
            "fi_net_earn": decimals(earned, 15),
            "fi_basic_eps": decimals(earned // shares, 10),
            "fi_dilut_eps": decimals(earned // diluted, 10),
            "fi_margin": decimals(margin, 10),
            "fi_inventory": decimals(revenue * whole(seed, "inventory", number, 30) // 100, 15),
            "fi_assets": decimals(assets, 15),
            "fi_liability": decimals(assets * (20 + whole(seed, "liability", number, 60)) // 100, 15),
            "fi_out_basic": shares,
            "fi_out_dilut": diluted,
        }
    )


def _founded(seed: int, company: Ints) -> np.ndarray:
    return _FIRST_FOUNDED + whole(seed, "founded", company, _YEARS_OF_FOUNDING * 365)


def _shares(seed: int, company: Ints) -> Ints:
    """Return the number of common shares outstanding."""
    return 1_000_000 + 1_000 * whole(seed, "shares", company, 500_000)


# News about companies: two items each, with bodies of 1 to 100,000 characters, or fewer in a small database.

_ROWS = 160  # rows of a piece: no more than 16 MB
_FIRST_DAY, _DAY_MS = np.datetime64("2004-01-01", "ms"), 24 * 3600 * 1000
_SIGNED_PERCENT = 90


def news(seed: int, population: Population, company: Ints, compressibility: float) -> Iterator[Piece]:
    number = (company[:, None] * NEWS + np.arange(NEWS)[None, :]).ravel()
    yield "brokerage.news_xref", pa.table({"nx_ni_id": _key(number), "nx_co_id": company_key(number // NEWS)})
    for start in range(0, len(number), _ROWS):
        yield "brokerage.news_item", _items(seed, population, number[start : start + _ROWS], compressibility)


def _items(seed: int, population: Population, number: Ints, compressibility: float) -> pa.Table:
    lengths = 1 + whole(seed, "body length", number, population.longest_article)
    day, millisecond = whole(seed, "day of news", number, 366), whole(seed, "time of news", number, _DAY_MS)
    return pa.table(
        {
            "ni_id": _key(number),
            "ni_headline": short(seed, "headline", number, np.full(len(number), 2)),
            "ni_summary": short(seed, "summary", number, 5 + whole(seed, "summary length", number, 3)),
            "ni_item": prose(seed, "body", number, lengths, compressibility),
            "ni_dts": _FIRST_DAY + (day * _DAY_MS + millisecond),
            "ni_source": _sources(seed, number),
            "ni_author": _authors(seed, number),
        }
    )


def _key(number: Ints) -> Ints:
    return KEY + number + 1


def _sources(seed: int, number: Ints) -> pa.StringArray:
    towns = words.towns()
    town = chosen(towns, whole(seed, "source", number, len(towns)))
    return pc.binary_join_element_wise(town, pa.repeat("News", len(number)), " ")


def _authors(seed: int, number: Ints) -> pa.StringArray:
    """Return the authors; the other articles are unsigned."""
    signed = pa.array(whole(seed, "signed", number, 100) < _SIGNED_PERCENT)
    return pc.if_else(signed, people(seed, "author", number), pa.scalar(None, pa.string()))

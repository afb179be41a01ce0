"""Tables that do not grow with the customers: what trades cost, taxes, exchanges, industries, ZIP codes. Names and
addresses of people are drawn from these."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.loaders import Piece, digits
from stallmark.loaders.brokerage.counts import FIXED_ROWS
from stallmark.schema import words
from stallmark.schema.brokerage import EXCHANGES, Population, address_key_of_exchange
from stallmark.schema.draw import Ints, whole
from stallmark.schema.words import chosen, decimals


# Names of people.
def people(seed: int, who: str, number: Ints) -> pa.StringArray:
    """Return first and last name of each of `number`; `who` gives brokers, authors and others different names."""
    first, last = pa.concat_arrays(words.first_names()), words.last_names()
    return pc.binary_join_element_wise(
        chosen(first, whole(seed, f"{who}'s first name", number, len(first))),
        chosen(last, whole(seed, f"{who}'s last name", number, len(last))),
        " ",
    )


# Addresses of exchanges, companies and customers, and the ZIP codes they are in.

ZIP_CODES = FIXED_ROWS["zip_code"]
_FLATS = 40


def addresses(seed: int, whose: str, number: Ints, keys: Ints) -> pa.Table:
    """Return rows of the table `address`; `number` counts exchanges, companies or customers. Half have one line."""
    streets = words.streets()
    house = pc.cast(pa.array(1 + whole(seed, f"{whose} house", number, 9_999)), pa.string())
    street = chosen(streets, whole(seed, f"{whose} street", number, len(streets)))
    flat = whole(seed, f"{whose} flat", number, 2 * _FLATS)
    return pa.table(
        {
            "ad_id": keys,
            "ad_line1": pc.binary_join_element_wise(house, street, " "),
            "ad_line2": chosen(_flats(), flat),
            "ad_zc_code": chosen(zip_codes(), zip_of(seed, whose, number)),
            "ad_ctry": pa.repeat("USA", len(keys)),
        }
    )


def zip_of(seed: int, whose: str, number: Ints) -> Ints:
    """Return the ZIP code of an address."""
    return whole(seed, f"{whose} ZIP code", number, ZIP_CODES)


def state_of(zip_code: Ints) -> Ints:
    """Return the index in `words.states()` of a ZIP code: each state is a range of codes."""
    return zip_code * len(words.states()) // ZIP_CODES


@lru_cache
def zip_codes() -> pa.StringArray:
    return digits(501 + 6 * np.arange(ZIP_CODES), 5)


def zip_code_table() -> pa.Table:
    number = np.arange(ZIP_CODES)
    towns, states = words.towns(), [abbreviation for abbreviation, _ in words.states()]
    return pa.table(
        {
            "zc_code": zip_codes(),
            "zc_town": chosen(towns, number % len(towns)),
            "zc_div": chosen(states, state_of(number)),
        }
    )


@lru_cache
def _flats() -> pa.StringArray:
    return pa.array([f"Apt. {number + 1}" for number in range(_FLATS)] + [None] * _FLATS, pa.string())


# Tax rates, and the two that a customer pays: one of the country and one of the home state.


# Rates in 0.00001 of what was earned: those of the country, then those of each state in turn.
_OF_COUNTRY, _OF_STATE, _STATES = 20, 6, 50
TAX_RATES = np.concatenate(
    [
        10_000 + 1_000 * np.arange(_OF_COUNTRY),
        (15 * np.arange(_STATES)[:, None] + 1_000 * np.arange(1, _OF_STATE + 1)[None, :]).ravel(),
    ]
)


def tax_rates(seed: int, customer: Ints) -> tuple[Ints, Ints]:
    """Return the customer's two taxes, as places in `RATES`."""
    state = state_of(zip_of(seed, "customer", customer))
    bracket = whole(seed, "state tax", customer, _OF_STATE)
    return whole(seed, "country tax", customer, _OF_COUNTRY), _OF_COUNTRY + state * _OF_STATE + bracket


@lru_cache
def tax_ids() -> pa.StringArray:
    brackets = [("US", number) for number in range(_OF_COUNTRY)]
    brackets += [(state, number) for state, _ in words.states() for number in range(_OF_STATE)]
    return pa.array([f"{place}{number + 1:02}" for place, number in brackets])


def tax_rate_table() -> pa.Table:
    names = [f"Federal tax, bracket {number + 1}" for number in range(_OF_COUNTRY)]
    names += [f"{state} tax, bracket {number + 1}" for _, state in words.states() for number in range(_OF_STATE)]
    return pa.table({"tx_id": tax_ids(), "tx_name": names, "tx_rate": decimals(TAX_RATES, 6, 5)})


STATUSES = {"ACTV": "Active", "CMPT": "Completed", "CNCL": "Canceled", "PNDG": "Pending", "SBMT": "Submitted"}
# Identifier, name, whether it sells, whether at the market's price. The tables below have them in this order.
TRADE_TYPES = (
    ("TMB", "Market-Buy", False, True),
    ("TMS", "Market-Sell", True, True),
    ("TLB", "Limit-Buy", False, False),
    ("TLS", "Limit-Sell", True, False),
    ("TSL", "Stop-Loss", True, False),
)
EXCHANGE_NAMES = {
    "NYSE": "New York Stock Exchange",
    "NASDAQ": "Nasdaq Stock Market",
    "AMEX": "American Stock Exchange",
    "PCX": "Pacific Exchange",
}
OPEN, CLOSE = 900, 1700  # hours and minutes: a trading day has eight hours
TIERS = 3

# [trade type, tier]: the dearer the higher the effort, the cheaper the better the customer.
CHARGE_CENTS = np.array([[700], [700], [900], [900], [1_000]]) - np.array([[0, 150, 300]])

# [tier, trade type, exchange, band of quantity], in hundredths of a percent of the value. The quantities that are
# traded (100, 200, 400, 800) are in different bands; each band ends with its number of shares.
BAND_ENDS = np.array([150, 300, 600, 1_000_000])
COMMISSION_RATE_HUNDREDTHS = (
    120
    - 20 * np.arange(TIERS)[:, None, None, None]
    - 4 * np.arange(len(TRADE_TYPES))[None, :, None, None]
    - 3 * np.arange(EXCHANGES)[None, None, :, None]
    - 15 * np.arange(len(BAND_ENDS))[None, None, None, :]
)

SECTORS = (
    "Energy", "Materials", "Transport", "Machinery", "Electronics", "Software",
    "Media", "Retail", "Food", "Health", "Finance", "Property",
)  # fmt: skip
_FIELDS = (
    "Production", "Services", "Equipment", "Supplies", "Trade", "Research", "Leasing", "Recycling", "Consulting",
)  # fmt: skip
INDUSTRIES = FIXED_ROWS["industry"]


def fixed(seed: int, population: Population) -> Iterator[Piece]:
    """Return all tables of the fixed group, and the addresses of the exchanges."""
    yield "brokerage.status_type", pa.table({"st_id": list(STATUSES), "st_name": list(STATUSES.values())})
    yield "brokerage.trade_type", _trade_types()
    yield "brokerage.charge", _charges()
    yield "brokerage.taxrate", tax_rate_table()
    yield "brokerage.zip_code", zip_code_table()
    yield "brokerage.sector", pa.table({"sc_id": codes(len(SECTORS)), "sc_name": list(SECTORS)})
    yield "brokerage.industry", _industries()
    yield "brokerage.address", addresses(seed, "exchange", np.arange(EXCHANGES), _EXCHANGE_KEYS)
    yield "brokerage.exchange", _exchanges(population)
    yield "brokerage.commission_rate", _commission_rates()


def exchange_of(security: Ints) -> Ints:
    """Return the number of the exchange that lists a security."""
    return security % EXCHANGES


def codes(count: int) -> list[str]:
    """Return identifiers of two letters, in the order of the alphabet."""
    return [chr(65 + number // 26) + chr(65 + number % 26) for number in range(count)]


def _trade_types() -> pa.Table:
    ids, names, sells, at_market = zip(*TRADE_TYPES, strict=True)
    return pa.table({"tt_id": ids, "tt_name": names, "tt_is_sell": sells, "tt_is_mrkt": at_market})


def _charges() -> pa.Table:
    kind, tier = (axis.ravel() for axis in np.indices(CHARGE_CENTS.shape))
    return pa.table(
        {
            "ch_tt_id": chosen(_TRADE_TYPE_IDS, kind),
            "ch_c_tier": (tier + 1).astype(np.int16),
            "ch_chrg": decimals(CHARGE_CENTS.ravel(), 10),
        }
    )


def _commission_rates() -> pa.Table:
    tier, kind, exchange, band = (axis.ravel() for axis in np.indices(COMMISSION_RATE_HUNDREDTHS.shape))
    band_starts = np.append(1, BAND_ENDS[:-1] + 1)
    return pa.table(
        {
            "cr_c_tier": (tier + 1).astype(np.int16),
            "cr_tt_id": chosen(_TRADE_TYPE_IDS, kind),
            "cr_ex_id": chosen(EXCHANGE_IDS, exchange),
            "cr_from_qty": band_starts[band].astype(np.int32),
            "cr_to_qty": BAND_ENDS[band].astype(np.int32),
            "cr_rate": decimals(COMMISSION_RATE_HUNDREDTHS.ravel(), 5),
        }
    )


def _industries() -> pa.Table:
    """Return the industries; they take the sectors in turn."""
    field, sector = np.divmod(np.arange(INDUSTRIES), len(SECTORS))
    return pa.table(
        {
            "in_id": codes(INDUSTRIES),
            "in_name": [f"{SECTORS[s]} {_FIELDS[f]}" for s, f in zip(sector, field, strict=True)],
            "in_sc_id": chosen(codes(len(SECTORS)), sector),
        }
    )


def _exchanges(population: Population) -> pa.Table:
    names = list(EXCHANGE_NAMES.values())
    return pa.table(
        {
            "ex_id": EXCHANGE_IDS,
            "ex_name": names,
            "ex_num_symb": np.bincount(exchange_of(np.arange(population.securities))).astype(np.int32),
            "ex_open": np.full(EXCHANGES, OPEN, np.int32),
            "ex_close": np.full(EXCHANGES, CLOSE, np.int32),
            "ex_desc": [f"{name}, where orders are taken from 9:00 to 17:00, Monday to Friday" for name in names],
            "ex_ad_id": _EXCHANGE_KEYS,
        }
    )


EXCHANGE_IDS = tuple(EXCHANGE_NAMES)
_TRADE_TYPE_IDS = tuple(kind for kind, *_ in TRADE_TYPES)
_EXCHANGE_KEYS = address_key_of_exchange(np.arange(EXCHANGES))

"""Tables that do not grow with the customers: what trades cost, taxes, exchanges, industries, ZIP codes."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from stallmark.loaders.brokerage.counts import FIXED_ROWS
from stallmark.loaders.brokerage.people import addresses, tax_rate_table, zip_code_table
from stallmark.loaders.plan import Piece
from stallmark.schema.brokerage import EXCHANGES, Population, address_key_of_exchange
from stallmark.schema.draw import Ints
from stallmark.schema.words import chosen, decimals

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

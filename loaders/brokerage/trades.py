"""The trade group of a load unit: all tables that follow from its trades, brokers and accounts among them."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from stallmark.loaders import Piece
from stallmark.loaders.brokerage.companies import security_names, symbols
from stallmark.loaders.brokerage.customers import account_names, broker_names, names, tax_rate_of, tax_status_of
from stallmark.loaders.brokerage.fixed import (
    BAND_ENDS,
    CHARGE_CENTS,
    COMMISSION_RATE_HUNDREDTHS,
    TRADE_TYPES,
    exchange_of,
)
from stallmark.loaders.brokerage.simulation import LIMIT_BUY, QUANTITIES, STRETCH, Completed, History, Simulation
from stallmark.schema.brokerage import (
    ACCOUNTS,
    BROKERS,
    UNIT,
    Population,
    broker_key,
    broker_of,
    customer_key,
    moment,
    tier_of,
)
from stallmark.schema.draw import Ints
from stallmark.schema.words import chosen, decimals

TAXED_NOT_AT_ALL, TAXED_AT_SOURCE = 0, 1  # tax statuses of an account; 2 is taxed elsewhere
SETTLED_AFTER_DAYS = 2  # Saturdays and Sundays do not count


class TradeGroup:
    """The rows of a load unit that depend on its trades. Balances begin at 0 and may become negative: a debt."""

    def __init__(self, seed: int, population: Population, load_unit: int):
        self._seed = seed
        self._simulation = Simulation(seed, population, load_unit)
        book = self._simulation.book
        self._owners, self._accounts = book.owners, book.account_keys
        self._brokers = broker_of(self._accounts)
        self._first_broker = load_unit * BROKERS
        self._tiers = tier_of(self._owners) - 1
        self._tax_status = tax_status_of(seed, self._accounts)
        self._tax_rates = tax_rate_of(seed, self._owners)
        # Of the securities that are traded here, and which of these an account's are.
        traded, self._place = np.unique(book.securities, return_inverse=True)
        self._symbols, self._security_names = symbols(traded), security_names(seed, traded)
        customers = load_unit * UNIT + np.arange(UNIT)
        self._executors = names(seed, customers).take(pa.array(self._owners - load_unit * UNIT))
        self._balances = np.zeros(ACCOUNTS, np.int64)
        self._broker_trades = np.zeros(BROKERS, np.int64)
        self._broker_commission = np.zeros(BROKERS, np.int64)

    def pieces(self) -> Iterator[Piece]:
        for completed in self._simulation.completed():
            yield from self._trade_pieces(completed)
        yield from self._holding_pieces()
        yield "brokerage.customer_account", self._customer_accounts()
        yield "brokerage.broker", self._broker_table()

    def _trade_pieces(self, done: Completed) -> Iterator[Piece]:
        orders = done.orders
        value = done.cents * orders.quantity
        charge = CHARGE_CENTS[orders.type, self._tiers[orders.account]]
        commission = self._commission(done, value)
        tax = self._tax(done)
        withheld = np.where(self._tax_status[orders.account] == TAXED_AT_SOURCE, tax, 0)
        amount = np.where(done.sells, value, -value) - charge - commission - withheld
        self._book(done, amount, commission)
        yield "brokerage.trade", pa.table({
            "t_id": done.key,
            "t_dts": done.completed,
            "t_st_id": pa.repeat("CMPT", len(done.key)),
            "t_tt_id": chosen(_TYPE_IDS, orders.type),
            "t_is_cash": orders.cash,
            "t_s_symb": chosen(self._symbols, self._place[orders.account, orders.held]),
            "t_qty": orders.quantity.astype(np.int32),
            "t_bid_price": decimals(orders.bid_cents, 8),
            "t_ca_id": self._accounts[orders.account],
            "t_exec_name": chosen(self._executors, orders.account),
            "t_trade_price": decimals(done.cents, 8),
            "t_chrg": decimals(charge, 10),
            "t_comm": decimals(commission, 10),
            "t_tax": decimals(tax, 10),
            "t_lifo": orders.lifo,
        })  # fmt: skip
        yield "brokerage.trade_history", _trade_history(done)
        yield "brokerage.settlement", pa.table({
            "se_t_id": done.key,
            "se_cash_type": chosen(("Margin", "Cash Account"), orders.cash.astype(np.int64)),
            "se_cash_due_date": np.busday_offset(done.completed.astype("datetime64[D]"), SETTLED_AFTER_DAYS),
            "se_amt": decimals(amount, 10),
        })  # fmt: skip
        yield "brokerage.cash_transaction", self._cash_transactions(done, amount)
        yield "brokerage.holding_history", _holding_history(done.history)

    def _commission(self, done: Completed, value: Ints) -> Ints:
        """Return the commission in cents, half a cent rounded up; the rate is in hundredths of a percent."""
        orders = done.orders
        rate = COMMISSION_RATE_HUNDREDTHS[
            self._tiers[orders.account],
            orders.type,
            exchange_of(orders.security),
            np.searchsorted(BAND_ENDS, orders.quantity),
        ]
        return (value * rate + 5_000) // 10_000

    def _tax(self, done: Completed) -> Ints:
        """Return the tax on what a trade earned, where the account is taxed: in cents, half a cent rounded up."""
        account = done.orders.account
        taxed = (self._tax_status[account] != TAXED_NOT_AT_ALL) & (done.earned > 0)
        return np.where(taxed, (done.earned * self._tax_rates[account] + 50_000) // 100_000, 0)

    def _book(self, done: Completed, amount: Ints, commission: Ints) -> None:
        account = done.orders.account
        np.add.at(self._balances, account, np.where(done.orders.cash, amount, 0))
        broker = self._brokers[account] - self._first_broker
        np.add.at(self._broker_trades, broker, 1)
        np.add.at(self._broker_commission, broker, commission)

    def _cash_transactions(self, done: Completed, amount: Ints) -> pa.Table:
        cash = np.flatnonzero(done.orders.cash)
        orders = done.orders
        quantity = np.searchsorted(QUANTITIES, orders.quantity[cash])
        begin = chosen(_BEGINNINGS, orders.type[cash] * len(QUANTITIES) + quantity)
        security = self._place[orders.account[cash], orders.held[cash]]
        name = pc.binary_join_element_wise(begin, chosen(self._security_names, security), "")
        return pa.table({
            "ct_t_id": done.key[cash],
            "ct_dts": done.completed[cash],
            "ct_amt": decimals(amount[cash], 10),
            "ct_name": name,
        })  # fmt: skip

    def _holding_pieces(self) -> Iterator[Piece]:
        open_ones = self._simulation.holdings
        account, held = np.divmod(open_ones.position, open_ones.positions // ACCOUNTS)
        holdings = pa.table({
            "h_t_id": open_ones.key,
            "h_ca_id": self._accounts[account],
            "h_s_symb": chosen(self._symbols, self._place[account, held]),
            "h_dts": open_ones.begun,
            "h_price": decimals(open_ones.cents, 8),
            "h_qty": open_ones.quantity.astype(np.int32),
        })  # fmt: skip
        yield from _pieces("brokerage.holding", holdings)
        account, held, net = self._simulation.holdings_left()
        summaries = pa.table({
            "hs_ca_id": self._accounts[account],
            "hs_s_symb": chosen(self._symbols, self._place[account, held]),
            "hs_qty": net.astype(np.int32),
        })  # fmt: skip
        yield from _pieces("brokerage.holding_summary", summaries)

    def _customer_accounts(self) -> pa.Table:
        return pa.table({
            "ca_id": self._accounts,
            "ca_b_id": broker_key(self._brokers),
            "ca_c_id": customer_key(self._owners),
            "ca_name": account_names(self._seed, self._accounts),
            "ca_tax_st": self._tax_status.astype(np.int16),
            "ca_bal": decimals(self._balances, 12),
        })  # fmt: skip

    def _broker_table(self) -> pa.Table:
        brokers = self._first_broker + np.arange(BROKERS)
        return pa.table({
            "b_id": broker_key(brokers),
            "b_st_id": pa.repeat("ACTV", BROKERS),
            "b_name": broker_names(self._seed, brokers),
            "b_num_trades": self._broker_trades.astype(np.int32),
            "b_comm_total": decimals(self._broker_commission, 12),
        })  # fmt: skip


def _pieces(table: str, rows: pa.Table) -> Iterator[Piece]:
    for first in range(0, rows.num_rows, STRETCH):
        yield table, rows.slice(first, STRETCH)


def _trade_history(done: Completed) -> pa.Table:
    """Return the histories: a limit order has waited (PNDG) before it went to the market (SBMT); both have been
    completed (CMPT)."""
    waited = done.orders.type >= LIMIT_BUY
    keys = [done.key[waited], done.key, done.key]
    times = [moment(done.orders.placed[waited]), moment(done.orders.submitted), done.completed]
    states = np.repeat(np.arange(3), [len(ids) for ids in keys])
    return pa.table({
        "th_t_id": np.concatenate(keys),
        "th_dts": np.concatenate(times),
        "th_st_id": chosen(("PNDG", "SBMT", "CMPT"), states),
    })  # fmt: skip


def _holding_history(history: History) -> pa.Table:
    return pa.table({
        "hh_h_t_id": history.holding,
        "hh_t_id": history.trade,
        "hh_before_qty": history.before.astype(np.int32),
        "hh_after_qty": history.after.astype(np.int32),
    })  # fmt: skip


_TYPE_IDS = [kind for kind, *_ in TRADE_TYPES]
_BEGINNINGS = [f"{name} {quantity} shares of " for _, name, *_ in TRADE_TYPES for quantity in QUANTITIES]

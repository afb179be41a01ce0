"""Security-Detail: the facts and the history of a security and its company."""

import random
from datetime import date, timedelta
from typing import ClassVar, NamedTuple

from stallmark.engines.base import Session
from stallmark.errors import CallFailed, ErrorClass
from stallmark.transactions.brokerage.context import Context
from stallmark.transactions.workload import Outcome, Transaction

FEWEST_DAYS, MOST_DAYS = 5, 20
ARTICLES_SHARE = 0.01

# From the last of these days on daily_market, which ends with 2004, has as many as are asked for.
_LAST_MARKET_MONDAY, _LAST = date(2004, 12, 27), date(2004, 12, 3)


class Detail(NamedTuple):
    """The inputs. `articles`: with the full texts of the news."""

    symbol: str
    since: str
    days: int
    articles: bool


class SecurityDetail(Transaction):
    name = "security_detail"
    frames: ClassVar = {"security_detail": 4}
    limit_s = 3.0
    reads_only = True

    def __init__(self, context: Context):
        super().__init__(context)
        first = _LAST_MARKET_MONDAY - timedelta(weeks=context.population.market_weeks - 1)
        self._dates = [(first + timedelta(day)).isoformat() for day in range((_LAST - first).days + 1)]

    def inputs(self, rng: random.Random) -> Detail:
        draw, symbols = rng.random, self.shared.symbols
        return Detail(
            symbols[int(draw() * len(symbols))],
            self._dates[int(draw() * len(self._dates))],
            FEWEST_DAYS + int(draw() * (MOST_DAYS - FEWEST_DAYS + 1)),
            draw() < ARTICLES_SHARE,
        )

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        if not session.call("security_detail", inputs):
            raise CallFailed(ErrorClass.OTHER, "", f"security {inputs[0]} does not exist: run `stallmark check`")
        return Outcome.COMMITTED

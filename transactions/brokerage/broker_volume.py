"""Broker-Volume: the volume of orders that wait with brokers for the securities of a sector."""

import random
from typing import ClassVar, NamedTuple

from stallmark.engines.base import Session
from stallmark.transactions.workload import Outcome, Transaction

FEWEST_BROKERS, MOST_BROKERS = 20, 40


class Volume(NamedTuple):
    """The inputs. `brokers`: their names, with commas between them."""

    brokers: str
    sector: str


class BrokerVolume(Transaction):
    """The transaction. It succeeds as well when none of the brokers has orders waiting."""

    name = "broker_volume"
    frames: ClassVar = {"broker_volume": 2}
    limit_s = 3.0
    reads_only = True

    def inputs(self, rng: random.Random) -> Volume:
        brokers, sectors = self.shared.broker_names, self.shared.sector_names
        count = FEWEST_BROKERS + int(rng.random() * (MOST_BROKERS - FEWEST_BROKERS + 1))
        chosen = rng.sample(brokers, min(count, len(brokers)))
        return Volume(",".join(chosen), sectors[int(rng.random() * len(sectors))])

    def execute(self, session: Session, inputs: tuple) -> Outcome:
        session.call("broker_volume", inputs)
        return Outcome.COMMITTED

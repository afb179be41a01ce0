"""The brokerage database, derived from TPC-E: 33 tables, 50 foreign keys.

What is there by number (keys, tiers, accounts) is in `brokerage_population`. All text is ASCII.
"""

from stallmark.schema.brokerage import broker, customer, dimension, holding, market, trade
from stallmark.schema.brokerage.common import METADATA

__all__ = ["METADATA", "broker", "customer", "dimension", "holding", "market", "trade"]

"""The brokerage database, derived from TPC-E: 33 tables, 50 foreign keys.

Keys, tiers and accounts by number are in `population`. All text is ASCII.
"""

from stallmark.schema.brokerage import broker, customer, dimension, holding, market, trade
from stallmark.schema.brokerage.common import METADATA

__all__ = ["METADATA", "broker", "customer", "dimension", "holding", "market", "trade"]

"""The brokerage database, derived from TPC-E: 33 tables in its four groups, 50 foreign keys.

What is there by number (keys, tiers, accounts) is in `brokerage_population`. All text is ASCII.
"""

from stallmark.schema.brokerage import broker, customer, dimension, market
from stallmark.schema.brokerage.common import METADATA

__all__ = ["METADATA", "broker", "customer", "dimension", "market"]

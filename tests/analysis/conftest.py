"""Steps of runs of known truth."""

from support.synthetic_steps import fast, slow, steady

__all__ = ["fast", "slow", "steady"]

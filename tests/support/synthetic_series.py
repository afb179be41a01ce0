"""Throughput by the second, of known truth, for tests of steadiness: 100 TPS that neither drift nor change."""

from itertools import accumulate

import numpy as np


def autoregressive(seconds: int, phi: float, *, noise: float = 0.03, counting: float = 0.02, seed: int = 0):
    """Shape (seconds,): what neighbouring seconds share with the correlation `phi` (relative deviation `noise`), and
    what each has for itself (`counting`)."""
    rng = np.random.default_rng((seed, seconds))
    settle = 200
    drawn = accumulate(rng.normal(size=seconds + settle), lambda before, new: new + phi * before)
    shared = np.fromiter(drawn, float)[settle:] * np.sqrt(1 - phi**2)
    return 100 * (1 + noise * shared + counting * rng.normal(size=seconds))

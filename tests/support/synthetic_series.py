"""Throughput by the second, of known truth, for tests of steadiness: 100 TPS that neither drift nor change."""

import numpy as np
import scipy  # its parts are imported when first asked for


def autoregressive(seconds: int, phi: float, *, noise: float = 0.03, counting: float = 0.02, seed: int = 0):
    """Shape (seconds,): what neighbouring seconds share with the correlation `phi` (relative deviation `noise`), and
    what each has for itself (`counting`)."""
    rng = np.random.default_rng((seed, seconds))
    settle = 200
    shared = scipy.signal.lfilter([1], [1, -phi], rng.normal(size=seconds + settle))[settle:] * np.sqrt(1 - phi**2)
    return 100 * (1 + noise * shared + counting * rng.normal(size=seconds))

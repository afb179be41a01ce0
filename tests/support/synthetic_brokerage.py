"""The brokerage's transactions in a synthetic record, and what can be wrong with them.

    make_run(folder, Truth(tps=400, brokerage=Brokerage(late_s=0.4)))

Users deal from real decks, one for each of two executors; a Trade-Result comes some seconds after its Trade-Order, a
Market-Feed after ten of those.
"""

import random
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from stallmark.driver.pacing import Dealer
from stallmark.record import histogram as hdr

CARDS = {
    "trade_order": 101, "trade_status": 190, "market_watch": 180, "security_detail": 140, "customer_position": 130,
    "trade_lookup": 80, "broker_volume": 49, "trade_update": 20,
}  # fmt: skip
LIMITS_S = dict.fromkeys(CARDS, 3.0) | {"trade_order": 2.0, "trade_status": 1.0}
FOLLOWERS = {"trade_result": 100 / 101, "market_feed": 10 / 101}
ROLLED_BACK = 1 / 101
EXECUTORS = 2


@dataclass(frozen=True)
class Brokerage:
    """A healthy market, unless told otherwise. Rates are per second, shares of one."""

    skipped: dict[str, float] = field(default_factory=dict)  # share of its cards that never became a transaction
    lost_results: float = 0.0  # share of the Trade-Results that never come
    late_s: float = 0.004
    waiting_more: float = 0.0  # tasks more in the queue with each second
    deadlocks: float = 0.0  # of Trade-Result, per second, each tried again
    burst: tuple[int, int, int] | None = None  # from and to which second how many more of them
    latency_s: dict[str, float] = field(default_factory=dict)  # means
    unknown: int = 0  # Trade-Results of unknown outcome
    unknown_committed: int = 0  # of them, those that the server had committed
    miscounted: int = 0  # Trade-Results in the database beyond those
    nominal_rate: float = 10.0

    def declared(self, committed: int) -> dict[str, Any]:
        """For the manifest; `committed` Trade-Results of the whole run."""
        before = 1_000_000
        users = [_kind(name, "users", LIMITS_S[name], cards) for name, cards in CARDS.items()]
        market = [
            _kind(name, "followers", 2.0) | {"follows": {"transaction": "trade_order", "each": each}}
            for name, each in FOLLOWERS.items()
        ]
        after = before + committed + self.unknown_committed + self.miscounted
        return {
            "name": "brokerage", "version": 2, "scale": {"customers": 5000, "days": 1}, "seed": 42,
            "transactions": [*users, *market, _kind("data_maintenance", "timer", None)], "primary": "trade_result",
            "nominal_rate": self.nominal_rate, "counted": {"trade_result": {"before": before, "after": after}},
            "opening": {"name": "trade_cleanup"},
        }  # fmt: skip


def _kind(name: str, source: str, limit_s: float | None, cards: int = 0) -> dict[str, Any]:
    reads_only = name not in ("trade_order", "trade_update", *FOLLOWERS, "data_maintenance")
    return {"name": name, "cards": cards, "source": source, "limit_s": limit_s, "reads_only": reads_only}


class Trading:
    """Events of each second, one after the other: rows of the driver's tables."""

    def __init__(self, truth: Brokerage, seed: int):
        self._truth = truth
        self._rng = random.Random(seed)
        self._dealers = [Dealer(CARDS, random.Random(f"{seed}/{number}")) for number in range(EXECUTORS)]
        self._results_due: Counter[int] = Counter()
        self._reports = 0
        self.results = 0
        """Committed so far."""

    def second(self, second: int, count: int, mean_us: float) -> dict[str, list[dict[str, Any]]]:
        """Rows by table. `count` transactions of users, of `mean_us` on average in the sum."""
        truth, rng = self._truth, self._rng
        dealt = Counter(self._dealers[n % EXECUTORS].next_card() for n in range(count))
        for name, share in truth.skipped.items():
            dealt[name] -= sum(rng.random() < share for _ in range(dealt[name]))
        rolled_back = sum(rng.random() < ROLLED_BACK for _ in range(dealt["trade_order"]))
        for _ in range(dealt["trade_order"] - rolled_back):
            if rng.random() >= truth.lost_results:
                self._results_due[second + round(1 + min(5.0, rng.expovariate(1.0)))] += 1
        done = Counter(dealt)
        done["trade_result"] = self._results_due.pop(second, 0)
        self.results += done["trade_result"]
        self._reports += done["trade_result"]
        done["market_feed"], self._reports = divmod(self._reports, 10)
        done["data_maintenance"] = second % 60 == 30
        aborted = int(truth.deadlocks * (second + 1)) - int(truth.deadlocks * second)
        if truth.burst and truth.burst[0] <= second < truth.burst[1]:
            aborted += truth.burst[2]
        errors = [_error(second, "deadlock", "1205", aborted, 0)] if aborted else []
        if second == 1 and truth.unknown:
            errors.append(_error(second, "unknown outcome", "08S01", truth.unknown, truth.unknown))
        return {
            "transactions": [
                self._row(second, name, n, rolled_back if name == "trade_order" else 0, aborted, mean_us)
                for name, n in done.items()
                if n
            ],
            "errors": errors,
            "deferred_queue": [
                {
                    "second": second,
                    "machine": 0,
                    "executor": executor,
                    "taken": done["trade_result"] // EXECUTORS,
                    "late_us": int(truth.late_s * 1e6 * (done["trade_result"] // EXECUTORS)),
                    "late_max_us": int(truth.late_s * 4e6),
                    "waiting": int(truth.waiting_more * second / EXECUTORS),
                }
                for executor in range(EXECUTORS)
            ],
        }

    def _row(self, second: int, name: str, n: int, rolled_back: int, aborted: int, mean_us: float) -> dict[str, Any]:
        mean_us = self._truth.latency_s.get(name, mean_us / 1e6) * 1e6
        values = np.array([self._rng.lognormvariate(0.0, 0.5) for _ in range(n)])
        values = np.maximum(1, values * mean_us / values.mean()).astype(np.int64)
        failed = self._truth.unknown if name == "trade_result" and second == 1 else 0
        encoded = hdr.encode(values)
        return (
            {
                "second": second, "transaction": name, "committed": n - rolled_back, "rolled_back": rolled_back,
                "failed": failed, "retries": aborted if name == "trade_result" else 0,
                "latency_us": int(values.sum()), "service_us": int(values.sum()),
            }
            | hdr.columns("latency", encoded)
            | hdr.columns("service", encoded)
        )  # fmt: skip


def _error(second: int, kind: str, code: str, attempts: int, given_up: int) -> dict[str, Any]:
    return {
        "second": second, "transaction": "trade_result", "error_class": kind, "code": code, "attempts": attempts,
        "given_up": given_up, "message": f"the server reported a {kind}",
    }  # fmt: skip

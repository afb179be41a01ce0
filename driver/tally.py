"""The aggregation of samples per second and transaction type, so that executors send histograms and not samples."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import itemgetter

import numpy as np

from stallmark.driver.client import COMMITTED, GIVEN_UP, ROLLED_BACK
from stallmark.driver.retry import Failure
from stallmark.driver.rows import DeferredRow, ErrorRow, OwnIORow, StatementRow, TransactionRow, UserRow, sum_known
from stallmark.engines.base import OwnIO
from stallmark.errors import ErrorClass
from stallmark.record import histogram as hdr
from stallmark.redact import without_secrets
from stallmark.transactions.workload import FAILED

SECOND_NS = 1_000_000_000

SAMPLE = np.dtype(
    [(name, np.int64) for name in ("transaction", "scheduled", "started", "ended", "free_since", "outcome", "retries")]
)
"""A client's sample; times are monotonic ns."""


STATEMENT_SAMPLE = np.dtype([(name, np.int64) for name in ("statement", "rows", "started", "answered", "ended")])
"""An executed statement of SQL of a user's own, by its place in the workload; `rows` is FAILED if it failed. It ended
with the last statement of its transaction, so that a second has whole transactions."""

ENDED = list(SAMPLE.names or ()).index("ended")


def as_table(samples: Sequence[tuple]) -> np.ndarray:
    """Return samples as a structured array of SAMPLE, shape (n,)."""
    return np.array(samples, SAMPLE)


def statement_table(transactions: Sequence[Sequence[int]]) -> np.ndarray:
    """Return the statements of transactions, as `WorkloadContext.report_statements` takes them, as an array of
    STATEMENT_SAMPLE."""
    numbers = np.fromiter(chain.from_iterable(transactions), np.int64).reshape(-1, 4)
    table = np.empty(len(numbers), STATEMENT_SAMPLE)
    for column, name in enumerate(("statement", "rows", "started", "answered")):
        table[name] = numbers[:, column]
    table["ended"] = np.repeat(
        np.fromiter(map(itemgetter(-1), transactions), np.int64, len(transactions)),
        np.fromiter(map(len, transactions), np.int64, len(transactions)) // 4,
    )
    return table


def transaction_rows(samples: np.ndarray, load: str, names: Sequence[str], start_ns: int) -> list[TransactionRow]:
    """Count samples by second and transaction. `start_ns` is the run's start on the monotonic clock."""
    return [
        _transaction_row(second, load, name, group[group["transaction"] == index])
        for second, group in _by_second(samples, start_ns)
        for index, name in enumerate(names)
        if (group["transaction"] == index).any()
    ]


def _transaction_row(second: int, load: str, name: str, group: np.ndarray) -> TransactionRow:
    done = group[group["outcome"] != GIVEN_UP]
    latency = (done["ended"] - done["scheduled"]) // 1000
    service = (done["ended"] - done["started"]) // 1000
    return TransactionRow(
        second,
        load,
        name,
        committed=int((done["outcome"] == COMMITTED).sum()),
        rolled_back=int((done["outcome"] == ROLLED_BACK).sum()),
        failed=len(group) - len(done),
        retries=int(group["retries"].sum()),
        latency_us=int(latency.sum()),
        service_us=int(service.sum()),
        latency=hdr.encode(latency),
        service=hdr.encode(service),
    )


def statement_rows(samples: np.ndarray, load: str, names: Sequence[str], start_ns: int) -> list[StatementRow]:
    """Count statement samples by second and statement."""
    return [
        _statement_row(second, load, names[index], group[group["statement"] == index])
        for second, group in _by_second(samples, start_ns)
        for index in np.unique(group["statement"]).tolist()
    ]


def _statement_row(second: int, load: str, name: str, group: np.ndarray) -> StatementRow:
    done = group[group["rows"] != FAILED]
    latency = (done["answered"] - done["started"]) // 1000
    return StatementRow(
        second,
        load,
        name,
        executions=len(done),
        rows=int(done["rows"].sum()),
        errors=len(group) - len(done),
        latency_us=int(latency.sum()),
        latency=hdr.encode(latency),
    )


def user_rows(samples: np.ndarray, load: str, start_ns: int, machine: int = 0, executor: int = 0) -> dict[int, UserRow]:
    """Add up by second what the users' time was spent on, in µs; a second without samples has a row when asked for."""
    rows = _Rows(lambda second: UserRow(second, load, machine, executor))
    for second, group in _by_second(samples, start_ns):
        # A user still busy at the scheduled time was late because of the server; only the rest is our own lag.
        lag = (group["started"] - np.maximum(group["scheduled"], group["free_since"])) // 1000
        think = np.maximum(0, group["scheduled"] - group["free_since"]) // 1000
        row = rows[second]
        row.busy_us = int((group["ended"] - group["started"]).sum() // 1000)
        row.think_us, row.lag_us, row.lag_max_us = int(think.sum()), int(lag.sum()), int(lag.max())
    return rows


class _Rows(dict[int, UserRow]):
    def __init__(self, make: Callable[[int], UserRow]):
        super().__init__()
        self._make = make

    def __missing__(self, second: int) -> UserRow:
        row = self[second] = self._make(second)
        return row


def deferred_rows(
    samples: np.ndarray, load: str, waiting: Mapping[int, int], start_ns: int, machine: int = 0, executor: int = 0
) -> list[DeferredRow]:
    """Count by second the tasks that background sessions took up, and how late, in µs. `waiting`: due and not taken."""
    rows = {second: DeferredRow(second, load, machine, executor, waiting=count) for second, count in waiting.items()}
    for second, group in _by_second(samples, start_ns):
        late = (group["started"] - group["scheduled"]) // 1000
        row = rows.setdefault(second, DeferredRow(second, load, machine, executor))
        row.taken, row.late_us, row.late_max_us = len(group), int(late.sum()), int(late.max())
    return list(rows.values())


def own_io_rows(samples: Iterable[tuple], load: str, names: Sequence[str], start_ns: int) -> list[OwnIORow]:
    """Add up samples of own I/O: the transaction, when it ended, and what is in an OwnIO."""
    groups: dict[tuple[int, int], list[OwnIO]] = defaultdict(list)
    for index, ended, *io in samples:
        groups[(ended - start_ns) // SECOND_NS, index].append(OwnIO(*io))
    return [
        OwnIORow(second, load, names[index], len(group), *map(sum_known, zip(*group, strict=True)))  # type: ignore[arg-type]
        for (second, index), group in groups.items()
    ]


def parts_by_second(begin_ns: int, end_ns: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of a stretch of a run, cut where its seconds end: (second, ns of the stretch in it)."""
    while begin_ns < end_ns:
        second = begin_ns // SECOND_NS
        cut = min(end_ns, (second + 1) * SECOND_NS)
        yield second, cut - begin_ns
        begin_ns = cut


def _by_second(samples: np.ndarray, start_ns: int) -> Iterator[tuple[int, np.ndarray]]:
    seconds = (samples["ended"] - start_ns) // SECOND_NS
    for second in np.unique(seconds).tolist():
        yield second, samples[seconds == second]


def error_rows(failures: Iterable[Failure], load: str, start_ns: int) -> list[ErrorRow]:
    groups: dict[tuple[int, str, ErrorClass, str], list[Failure]] = defaultdict(list)
    for failure in failures:
        second = (failure.failed_ns - start_ns) // SECOND_NS
        groups[second, failure.transaction, failure.error.kind, failure.error.code].append(failure)
    return [
        ErrorRow(
            second,
            load,
            transaction,
            error_class=kind,
            code=code,
            attempts=len(group),
            given_up=sum(failure.given_up for failure in group),
            message=without_secrets(group[0].error.message),
        )
        for (second, transaction, kind, code), group in groups.items()
    ]

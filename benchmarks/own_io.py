"""The cost of asking sessions what their transactions read (driver/transaction_io.py), on the embedded server.

python -m benchmarks.own_io sample WORKLOAD           CPU and time of a sample: transactions of one user with one after
                                                      each against transactions with none
python -m benchmarks.own_io load WORKLOAD [EVERY]     TPS and CPU of eight users with samples at one in EVERY against
                                                      none, in turns of 3 s of one run: where EVERY is small it shows

What the transactions of the brokerage's users give rise to is left out.
"""

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from stallmark.driver import transaction_io as own_io
from stallmark.driver.deck import Dealer
from stallmark.driver.executor import SWITCH_INTERVAL_S
from stallmark.driver.pacing import Arrivals, ThinkTime
from stallmark.driver.virtual_user import VirtualUser
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.loaders.brokerage import LOADER
from stallmark.loaders.load import build
from stallmark.transactions import find_workload
from stallmark.transactions.workload import Workload, WorkloadContext

WORK = Path(os.environ.get("STALLMARK_BENCHMARK_DIR", tempfile.gettempdir())) / "stallmark-benchmark"
SCALES: dict[str, dict[str, Any]] = {
    "bank": {"branches": 20},
    "brokerage": LOADER.scale({"customers": 1_000, "days": 0.2}),
}
USERS, ROUNDS, TURN_S = 8, 20, 3


@contextmanager
def opened(workload: Workload) -> Iterator[tuple[EmbeddedEngine, Any]]:
    """Yield the engine, and what the users of a process share."""
    engine = EmbeddedEngine(EmbeddedServer(WORK / f"own-io-{workload.name}"), workload.name)
    scale = SCALES[workload.name]
    try:
        build(engine, workload, scale, 1, workers=2)
        engine.memory.cap(1 << 29)
        engine.prefill.fill(workload.name)
        engine.checkpoint()
        yield engine, workload.users.share(WorkloadContext(scale, 1, engine.query, lambda *task: None))
    finally:
        engine.close()


def cpu_us(pids: list[int]) -> float:
    """Return the CPU time in µs of this process and of sessions on the server."""
    server_ns = sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pids)
    return (time.process_time_ns() + server_ns) / 1000


def sample(workload: Workload, turns: int = 16, transactions: int = 200) -> None:
    with opened(workload) as (engine, shared):
        session, rng = engine.session(60), random.Random(1)
        mine = {kind: kind(shared) for kind in workload.users.deck}
        workload.prepare(session, mine)
        next_card = Dealer(workload.users.deck, random.Random(1)).next_card

        def turn(sample: Callable[[], Any]) -> tuple[float, float]:
            cpu, began = cpu_us([session.server_pid]), time.perf_counter_ns()
            for _ in range(transactions):
                transaction = mine[next_card()]
                transaction.execute(session, transaction.inputs(rng))
                sample()
            took = cpu_us([session.server_pid]) - cpu, (time.perf_counter_ns() - began) / 1000
            return took[0] / transactions, took[1] / transactions

        turn(session.own_io)
        pairs = [(turn(lambda: None), turn(session.own_io)) for _ in range(turns)]
    (cpu, wall), (cpu_with, wall_with) = (
        [statistics.median(column) for column in zip(*side, strict=True)] for side in zip(*pairs, strict=True)
    )
    samples = (own_io.RUN + 1) / own_io.RUN / own_io.one_in(len(workload.transactions))
    print(
        f"a transaction: {cpu:.0f} µs of CPU, {wall:.0f} µs; a sample: {cpu_with - cpu:.0f} and {wall_with - wall:.0f}"
    )
    print(f"{samples:.4f} samples per transaction: {samples * (cpu_with / cpu - 1):.2%} of its CPU, ", end="")
    print(f"{samples * (wall_with / wall - 1):.2%} of its time")


def load(workload: Workload, every: int) -> None:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    real, looking = own_io.OwnIOSampler.sample, True

    def look_or_not(samples: own_io.OwnIOSampler, *about: Any, **more: Any) -> int:
        return real(samples, *about, **more) if looking else samples.pause()

    own_io.one_in = lambda types: every
    own_io.OwnIOSampler.sample = look_or_not  # type: ignore[method-assign]
    with opened(workload) as (engine, shared):
        done: list[tuple] = []
        next_card = Dealer(workload.users.deck, random.Random(1)).next_card
        users = []
        for number in range(USERS):
            rng = random.Random(number)
            client = (engine, workload, shared, 60, rng, done.append, print, lambda sample: None, lambda client: None)
            users.append(VirtualUser(number, ThinkTime(Arrivals(), rng), next_card, *client))
            users[-1].start()
        time.sleep(TURN_S)
        pids = [user._session.server_pid for user in users if user._session]
        ratios = []
        for number in range(ROUNDS):
            turn = {}
            for looking in (True, False) if number % 2 else (False, True):
                cpu, count, began = cpu_us(pids), len(done), time.perf_counter()
                time.sleep(TURN_S)
                count = len(done) - count
                turn[looking] = count / (time.perf_counter() - began), (cpu_us(pids) - cpu) / count
            ratios.append([a / b for a, b in zip(turn[True], turn[False], strict=True)])
        for user in users:
            user.stop()
        for user in users:
            user.join()
    tps, cpu = (statistics.median(column) for column in zip(*ratios, strict=True))
    print(f"one in {every}, median of {ROUNDS} rounds: TPS {tps:.3f}, CPU per transaction {cpu:.3f} of that without")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["sample", name]:
            sample(find_workload(name))
        case ["load", name, *every]:
            load(find_workload(name), int(every[0]) if every else 20)

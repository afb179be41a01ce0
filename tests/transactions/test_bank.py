"""The bank's transaction: what it draws, what it does, and that many at once keep the balances."""

import random
import threading
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.building import copy_of

from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.engines.postgres.embedded_server import EmbeddedServer
from stallmark.errors import CallFailed
from stallmark.loaders.load import build
from stallmark.transactions import checks
from stallmark.transactions.bank import LARGEST_DELTA, WORKLOAD, Transfer
from stallmark.transactions.workload import Outcome


@given(branches=st.integers(1, 20_000), seed=st.integers())
def test_inputs_name_rows_that_exist(branches: int, seed: int) -> None:
    transfer = Transfer(range(branches))
    rng = random.Random(seed)
    for _ in range(20):
        account, teller, branch, delta = transfer.inputs(rng)
        assert 1 <= account <= 100_000 * branches
        assert 1 <= teller <= 10 * branches
        assert branch == -(-teller // 10)
        assert -LARGEST_DELTA <= delta <= LARGEST_DELTA


def test_inputs_are_a_function_of_the_generator() -> None:
    one, two = (Transfer(range(5)) for _ in range(2))
    a, b = random.Random(3), random.Random(3)
    assert [one.inputs(a) for _ in range(100)] == [two.inputs(b) for _ in range(100)]


def test_shares() -> None:
    transfer, rng, draws = Transfer(range(4)), random.Random(1), 40_000
    homes: Counter = Counter()
    tellers: Counter = Counter()
    for _ in range(draws):
        account, teller, branch, _ = transfer.inputs(rng)
        homes[branch, -(-account // 100_000)] += 1
        tellers[teller] += 1
    remote = sum(count for (branch, home), count in homes.items() if branch != home)
    assert remote / draws == pytest.approx(0.15, abs=0.01)
    # Evenly over the other branches: 12 pairs at 1.25 % each.
    assert len(homes) == 16
    assert all(c / draws == pytest.approx(0.0125, abs=0.003) for (a, b), c in homes.items() if a != b)
    assert all(count / draws == pytest.approx(1 / 40, abs=0.005) for count in tellers.values())


def test_extremes_are_drawn() -> None:
    class Edge(random.Random):
        value = 0.0

        def random(self) -> float:
            return self.value

    transfer, edge = Transfer(range(2)), Edge()
    assert transfer.inputs(edge) == (100_001, 1, 1, -LARGEST_DELTA)  # 0 is below 15 %: remote
    edge.value = 1 - 2**-53
    assert transfer.inputs(edge) == (200_000, 20, 2, LARGEST_DELTA)


def test_one_branch_has_no_remote_account() -> None:
    transfer, rng = Transfer(range(1)), random.Random(1)
    assert all(transfer.inputs(rng)[0] <= 100_000 for _ in range(1_000))


@pytest.fixture(scope="module")
def built(embedded_server: EmbeddedServer) -> EmbeddedEngine:
    engine = EmbeddedEngine(embedded_server, "bank_of_two")
    build(engine, WORKLOAD, {"branches": 2}, 1, workers=1)
    return engine


@pytest.fixture
def bank(built: EmbeddedEngine, request: pytest.FixtureRequest) -> EmbeddedEngine:
    return copy_of(built, request.node.name)


def user(bank: EmbeddedEngine, transactions: int, seed: int) -> list[Outcome]:
    session = bank.session(60)
    WORKLOAD.prepare(session, [Transfer])
    transfer, rng = Transfer(range(2)), random.Random(seed)
    outcomes = [transfer.execute(session, transfer.inputs(rng)) for _ in range(transactions)]
    session.close()
    return outcomes


def test_one_transfer(bank: EmbeddedEngine) -> None:
    session = bank.session(60)
    WORKLOAD.prepare(session, [Transfer])
    assert session.call("transfer", (150_000, 3, 1, 70)) == [(70,)]
    assert session.call("transfer", (150_000, 4, 1, -100)) == [(-30,)]
    assert bank.query("SELECT tid, bid, aid, delta, filler FROM bank.history ORDER BY tid") == [
        (3, 1, 150_000, 70, None),
        (4, 1, 150_000, -100, None),
    ]
    assert bank.query("SELECT abalance FROM bank.accounts WHERE aid = 150000") == [(-30,)]
    assert bank.query("SELECT tid, tbalance FROM bank.tellers WHERE tbalance <> 0 ORDER BY tid") == [(3, 70), (4, -100)]
    assert bank.query("SELECT bid, bbalance FROM bank.branches ORDER BY bid") == [(1, -30), (2, 0)]
    with pytest.raises(CallFailed, match="account 900000 does not exist"):
        Transfer(range(2)).execute(session, (900_000, 1, 1, 5))
    session.close()


def test_many_users_keep_the_balances(bank: EmbeddedEngine) -> None:
    outcomes: list[list[Outcome]] = []
    failures: list[CallFailed] = []

    def work(seed: int) -> None:
        try:
            outcomes.append(user(bank, 150, seed))
        except CallFailed as failure:
            failures.append(failure)

    users = [threading.Thread(target=work, args=[seed]) for seed in range(8)]
    for thread in users:
        thread.start()
    for thread in users:
        thread.join()
    assert not failures  # no deadlock: rows are locked in one order
    assert sum(map(len, outcomes)) == 8 * 150
    assert bank.query("SELECT count(*) FROM bank.history") == [(1_200,)]
    findings = checks.run(bank, WORKLOAD, {"branches": 2}, driven=True)
    assert [finding.name for finding in findings] == [condition.name for condition in WORKLOAD.conditions]
    assert all(finding.holds for finding in findings), findings

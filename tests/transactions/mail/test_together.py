"""Many users at once, on every engine: nothing is lost or done twice, and the database counts what users saw."""

import os
import random
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest
from support import sql_server
from support.answers import values
from support.canonical import checksums
from support.embedded_servers import copied, postmaster
from support.kept_databases import bring_back, drop_procedures, kept_database
from support.waiting import eventually

from stallmark.engines.base import Engine
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import CallFailed, ErrorClass
from stallmark.loaders.load import build
from stallmark.loaders.mail import LOADER
from stallmark.schema.deploy import batches
from stallmark.transactions import checks
from stallmark.transactions.mail import WORKLOAD, Context
from stallmark.transactions.workload import Outcome

USERS, EACH = 6, 60


def cards(rng: random.Random, number: int) -> list:
    kinds = [*WORKLOAD.users.deck, *WORKLOAD.background.timers]
    return [rng.choice(kinds) for _ in range(number)]


def counted(engine: Engine) -> Counter[str]:
    return Counter({kind.name: int(engine.query(sql)[0][0]) for kind, sql in WORKLOAD.users.counted.items()})


def test_many_users_lose_nothing(mail: Engine, context: Context, broken) -> None:
    before, done, failures = counted(mail), Counter[str](), list[CallFailed]()

    def work(seed: int) -> None:
        rng, session = random.Random(seed), mail.session(60.0)
        try:
            WORKLOAD.prepare(session, WORKLOAD.transactions)
            for kind in cards(rng, EACH):
                transaction = kind(context)
                outcome = transaction.execute(session, transaction.inputs(rng))
                done[kind.name] += outcome is Outcome.COMMITTED
        except CallFailed as failure:
            failures.append(failure)
        finally:
            session.close()

    users = [threading.Thread(target=work, args=[seed]) for seed in range(USERS)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert failures == []  # no deadlock: every change locks the mailbox first
    after = counted(mail)
    assert {name: after[name] - before[name] for name in after} == {name: done[name] for name in after}
    assert all(done[kind.name] for kind in WORKLOAD.users.deck)
    assert broken() == []


def play(engine: Engine, context: Context, number: int) -> tuple[list[tuple], dict]:
    """Return what a single user was answered, and the checksums of all tables afterwards."""
    session, rng, answers = engine.session(60.0), random.Random(5), list[tuple]()
    context.scan.mailbox, context.scan.message, context.scan.ahead = 1, 1, 0
    call = session.call

    def heard(name: str, parameters: tuple, *, commits: bool = True) -> list:
        rows = list(call(name, parameters, commits=commits))
        answers.append((name, *values(rows)))
        return rows

    session.call = heard  # type: ignore[method-assign, assignment]
    try:
        WORKLOAD.prepare(session, WORKLOAD.transactions)
        for kind in cards(rng, number):
            transaction = kind(context)
            transaction.execute(session, transaction.inputs(rng))
    finally:
        session.close()
    tables = checksums(engine, WORKLOAD.metadata)
    bring_back(engine, WORKLOAD.metadata)
    return answers, tables


def test_a_single_user_is_a_function_of_the_inputs(mail: Engine, context: Context) -> None:
    assert play(mail, context, 40) == play(mail, context, 40)


@pytest.mark.server
@pytest.mark.sqlserver
def test_both_engines_answer_the_same_and_hold_the_same_rows(context: Context) -> None:
    played = []
    for server in (None, MssqlEngine(sql_server.URL)):
        with kept_database(server, WORKLOAD, LOADER.scale({"mailboxes": 3, "messages": 20}), 1) as engine:
            drop_procedures(engine, WORKLOAD.schema)
            for batch in batches(WORKLOAD.procedures(engine.dialect)):
                engine.execute(batch)
            played.append(play(engine, context, 500))
    (ours, our_tables), (theirs, their_tables) = played
    assert ours == theirs
    assert our_tables == their_tables


# The server is killed under a load of mail: what was committed is there, once, and all of it consistent


SCALE = LOADER.scale({"mailboxes": 3, "messages": 20})


def test_a_killed_server_loses_nothing(template: Path, context: Context) -> None:
    with copied(template) as server:
        engine = EmbeddedEngine(server, "mail")
        build(engine, WORKLOAD, SCALE, 1, workers=1)
        committed, unknown, lock = Counter[str](), Counter[str](), threading.Lock()
        before = {kind.name: int(engine.query(sql)[0][0]) for kind, sql in WORKLOAD.users.counted.items()}

        def work(seed: int) -> None:
            rng, session = random.Random(seed), engine.session(60.0)
            WORKLOAD.prepare(session, WORKLOAD.users.deck)
            while True:
                kind = rng.choice(list(WORKLOAD.users.deck))
                transaction = kind(context)
                try:
                    outcome = transaction.execute(session, transaction.inputs(rng))
                except CallFailed as failure:
                    with lock:
                        unknown[kind.name] += failure.kind is ErrorClass.UNKNOWN_OUTCOME
                    return session.close()
                with lock:
                    committed[kind.name] += outcome is Outcome.COMMITTED

        users = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
        for user in users:
            user.start()
        eventually(lambda: sum(committed.values()) > 200)
        backends = [pid for (pid,) in engine.query("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")]
        for pid in (postmaster(server).pid, *backends):
            os.kill(pid, signal.SIGKILL)
        for user in users:
            user.join()
        engine.close()
        engine = EmbeddedEngine(server, "mail")
        after = {kind.name: int(engine.query(sql)[0][0]) for kind, sql in WORKLOAD.users.counted.items()}
        for name in before:
            assert committed[name] <= after[name] - before[name] <= committed[name] + unknown[name], name
        broken = [found for found in checks.run(engine, WORKLOAD, SCALE, driven=True) if found.holds is False]
        assert broken == []

"""The server is killed under a load of mail: what was committed is there, once, and all of it consistent."""

import os
import random
import signal
import threading
from collections import Counter
from pathlib import Path

import pytest
from support.waiting import eventually

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.errors import CallFailed, ErrorClass
from stallmark.loaders.load import build
from stallmark.loaders.mail import LOADER
from stallmark.transactions import checks
from stallmark.transactions.mail import WORKLOAD
from stallmark.transactions.mail.context import Context
from stallmark.transactions.workload import Outcome

SCALE = LOADER.scale({"mailboxes": 3, "messages": 20})


@pytest.mark.server
def test_a_killed_server_loses_nothing(tmp_path: Path, context: Context) -> None:
    server = EmbeddedServer(tmp_path / "server")
    engine = EmbeddedEngine(server, "mail")
    try:
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
        postmaster = int((tmp_path / "server" / "data" / "postmaster.pid").read_text().splitlines()[0])
        backends = [pid for (pid,) in engine.query("SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()")]
        for pid in (postmaster, *backends):
            os.kill(pid, signal.SIGKILL)
        for user in users:
            user.join()
        engine.close()
        engine = EmbeddedEngine(EmbeddedServer(tmp_path / "server"), "mail")
        after = {kind.name: int(engine.query(sql)[0][0]) for kind, sql in WORKLOAD.users.counted.items()}
        for name in before:
            assert committed[name] <= after[name] - before[name] <= committed[name] + unknown[name], name
        broken = [found for found in checks.run(engine, WORKLOAD, SCALE, driven=True) if found.holds is False]
        assert broken == []
    finally:
        engine.close()

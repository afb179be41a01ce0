"""Virtual users of Stallmark for a locustfile of one's own, beside the users that it has already:

    from stallmark.driver.locust import StallmarkUser

    class Broker(StallmarkUser):
        server = "postgresql://me@db/shop"
        think_time_s = 0.5

    class Clerk(StallmarkUser):
        server = "postgresql://me@db/orders"
        sql = "./orders"

`locust -f locustfile.py` starts and stops them as any others. As in a run of ours, the transactions are executed by
processes of their own, and Locust's statistics hold what these report. Nothing is recorded.
"""

from stallmark.driver.user_handle import VirtualUserHandle  # isort: skip  (patches the process: before everything else)
import logging
import math
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import gevent
from locust import events
from locust.env import Environment
from locust.rpc import Message as LocustMessage
from locust.runners import MasterRunner, Runner, WorkerRunner

from stallmark import capabilities
from stallmark.driver.channel import Closed
from stallmark.driver.executor_pool import Executors, LoadPool
from stallmark.driver.load import ALONE, LoadSpec, ThisMachine
from stallmark.driver.locust_statistics import LocustStatistics
from stallmark.driver.messages import ExecutorDied, Message, Report, SessionLost
from stallmark.driver.opening import open_workload
from stallmark.driver.pacing import Arrivals
from stallmark.engines import open_engine
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, StallmarkError, as_reason
from stallmark.loaders import ledger
from stallmark.redact import without_secrets
from stallmark.transactions import define, find_workload
from stallmark.transactions.workload import Workload, background_per_user, deck_of

logger = logging.getLogger(__name__)
_PLACE = "stallmark_place"
_reported: set[str] = set()


class StallmarkUser(VirtualUserHandle):
    """A virtual user on a database that `stallmark db build` has built, or with SQL of a user's own. Its tasks are the
    workload's transactions."""

    abstract = True
    server = ""
    """The URL of the server; without it STALLMARK_SERVER."""
    sql = ""
    """A folder of SQL of one's own, as a path from the locustfile."""
    shared = False
    """True if that SQL may change rows of the database."""
    most_users = 100
    """The users that executors are prepared for, of this class on all machines together."""
    think_time_s = 0.0
    """The mean of the exponential pauses between a user's transactions."""
    call_timeout_s = 60.0
    pool: LoadPool | None = None  # type: ignore[assignment]
    most_here = 0

    def on_start(self) -> None:
        """Start a virtual user, unless the test ends or has too many: this one then does nothing."""
        self.number = None  # type: ignore[assignment]
        if self.pool is None:
            return
        if len(self.pool) >= self.most_here:
            report_trouble(
                self.environment, f"{type(self).__name__} is prepared for {self.most_users:,} users: raise most_users."
            )
            return
        super().on_start()

    def on_stop(self) -> None:
        if self.pool is not None and self.number is not None:
            super().on_stop()


def report_trouble(environment: Environment, sentence: str) -> None:
    """Show among Locust's exceptions, on the master too, what happened to users; each sentence is logged once."""
    environment.process_exit_code = 1
    environment.events.user_error.fire(user_instance=None, exception=StallmarkError(sentence), tb=None)
    if sentence not in _reported:
        _reported.add(sentence)
        logger.error(sentence)


def load_of(kind: type[StallmarkUser], engine: Engine) -> LoadSpec:
    """Return the load that a class of users puts on its database; raise StallmarkError if it cannot do so."""
    url = without_secrets(kind.server)
    if any(task is not VirtualUserHandle.be_driven for task in kind.tasks):
        raise StallmarkError(f"{kind.__name__} has tasks of its own: give them to a class of users beside it.")
    if kind.sql:
        return _load(kind, _examined_workload(kind, engine), {}, seed=1)
    if not (entry := ledger.read(engine)) or not entry.complete:
        raise StallmarkError(f"{url} holds no whole database of Stallmark: build one with `stallmark db build`.")
    data = entry.identity
    workload = find_workload(data.workload)
    if data.version != workload.data_version:
        raise StallmarkError(f"The database of {url} is of another version of Stallmark: build it again.")
    if not workload.users.deck:
        raise StallmarkError(f"{data.workload} in {url} has no transactions that users could execute.")
    return _load(kind, workload, dict(data.scale), data.seed)


def _examined_workload(kind: type[StallmarkUser], engine: Engine) -> Workload:
    """Return the workload of a user's own SQL, once the server has taken each of its statements."""
    if not (readers := capabilities.parts("definition")):
        raise StallmarkError("This Stallmark lacks the capability `own_sql`, which drives SQL of your own: install it.")
    beside = Path(getattr(sys.modules[kind.__module__], "__file__", None) or "locustfile.py").parent
    workload = define(readers[0](kind.sql, beside))
    if not all(transaction.reads_only for transaction in workload.transactions):
        if reason := engine.not_writable_reason(()):
            raise StallmarkError(reason)
        if not (kind.shared or engine.is_local):
            raise StallmarkError(
                f"{workload.name} writes into the database {engine.database_name()}, whose rows are not Stallmark's: "
                f"write `shared = True` in {kind.__name__} if a load may change them."
            )
    workload.examine(engine, kind.most_users)
    return workload


def _load(kind: type[StallmarkUser], workload: Workload, scale: dict[str, int | float], seed: int) -> LoadSpec:
    deck = deck_of(workload, None)
    return LoadSpec(
        kind.__name__,
        workload.name,
        scale,
        deck,
        users=(kind.most_users,),
        seed=seed,
        call_timeout_s=kind.call_timeout_s,
        arrivals=Arrivals(think_ms=1000 * kind.think_time_s, think="exponential"),
        background_per_user=background_per_user(workload, deck),
        definition=None if workload.definition is None else dict(workload.definition),
    )


class _Test:
    """The part of our users in a test of Locust, on this machine."""

    def __init__(self, environment: Environment, runner: Runner):
        self._environment, self._runner = environment, runner
        self._here: ThisMachine | None = None if isinstance(runner, WorkerRunner) else ALONE
        self._executors: list[Executors] = []
        self._statistics = LocustStatistics(environment, time.time())
        self._reasons: list[str] = []
        if isinstance(runner, MasterRunner):
            environment.events.test_start.add_listener(self._number_workers)
            return
        if isinstance(runner, WorkerRunner):
            runner.register_message(_PLACE, self._set_place)
        environment.events.test_start.add_listener(self._start)
        environment.events.test_stop.add_listener(self._stop)
        environment.events.quitting.add_listener(self._stop)

    def _number_workers(self, **_: Any) -> None:
        """Number the workers, before they start users: no two of them are to give the same inputs to theirs."""
        for number, client in enumerate(clients := sorted(self._runner.clients), start=1):  # type: ignore[attr-defined]
            place = {"machine": number, "machines": len(clients)}
            self._runner.send_message(_PLACE, place, client_id=client)

    def _set_place(self, msg: LocustMessage, **_: Any) -> None:
        self._here = ThisMachine(**msg.data)

    def _start(self, **_: Any) -> None:
        kinds = [kind for kind in self._environment.user_classes if issubclass(kind, StallmarkUser)]
        if not kinds:
            return
        try:
            if self._here is None:
                raise StallmarkError("This worker came when the test had begun: start it before.")
            for kind in kinds:
                kind.server = kind.server or os.environ.get("STALLMARK_SERVER", "")
            for server in dict.fromkeys(kind.server for kind in kinds):
                self._start_on(server, [kind for kind in kinds if kind.server == server], self._here)
        except (StallmarkError, CallFailed, Closed) as error:
            self._stop()
            self._environment.process_exit_code = 1
            logger.error("; ".join(self._reasons) or as_reason(error))
            options = self._environment.parsed_options
            has_page = options and not options.headless and not isinstance(self._runner, WorkerRunner)
            gevent.spawn(self._runner.stop if has_page else self._runner.quit)

    def _start_on(self, server: str, kinds: list[type[StallmarkUser]], here: ThisMachine) -> None:
        if not server:
            raise StallmarkError(f"{kinds[0].__name__} has no server: write its URL there, or set STALLMARK_SERVER.")
        engine = open_engine(server)
        loads = [load_of(kind, engine) for kind in kinds]
        ours = next((load for load in loads if load.definition is None), None)
        if ours and here.machine <= 1:
            ledger.note_driven(engine)
            open_workload(engine, find_workload(ours.workload), ours.scale, ours.seed)
        executors = Executors(loads, engine.spec(), self._deliver, here)
        self._executors.append(executors)
        self._statistics = LocustStatistics(self._environment, time.time())
        executors.go(time.monotonic_ns())
        for kind, pool in zip(kinds, executors.pools, strict=True):
            kind.pool, kind.most_here = pool, math.ceil(kind.most_users / here.machines)

    def _stop(self, **_: Any) -> None:
        ending, self._executors = self._executors, []
        for executors in ending:
            executors.quit()
        for kind in self._environment.user_classes:
            if issubclass(kind, StallmarkUser):
                kind.pool = None

    def _deliver(self, message: Message) -> None:
        match message:
            case Report():
                self._statistics.add(message.rows())
            case SessionLost(load, _, why):
                report_trouble(self._environment, f"A virtual user of {load} lost the server: {why}.")
            case ExecutorDied(loads, pid, _, reason=reason):
                died = f"Executor process {pid} of {' and '.join(loads)} ended, and its users with it"
                self._reasons.append(f"{died}: {reason}" if reason else died)
                report_trouble(self._environment, self._reasons[-1])


@events.init.add_listener
def _join(environment: Environment, runner: Runner, **_: Any) -> None:
    # Now, because a worker that imports when the test begins sends no sign of life, and is given up.
    for kind in environment.user_classes:
        if issubclass(kind, StallmarkUser):
            with suppress(StallmarkError):  # which the test's begin reports
                open_engine(kind.server or os.environ.get("STALLMARK_SERVER", ""))
            for part in ("definition", "workload") if kind.sql else ():
                capabilities.parts(part)
    # Imports take seconds, by which a run time of Locust's would end early.
    gevent.get_hub().loop.update_now()
    _Test(environment, runner)

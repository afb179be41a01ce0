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

from stallmark.driver.locust_dispatcher import VirtualUserHandle  # isort: skip  (patches the process: before everything else)
import logging
import math
import os
import sys
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import Any

import gevent
from locust import events
from locust.env import Environment
from locust.rpc import Message as LocustMessage
from locust.runners import STATE_MISSING, MasterRunner, Runner, WorkerRunner

from stallmark.driver.channel import Closed, start_child
from stallmark.driver.executor_pool import Executors, LoadPool
from stallmark.driver.load import ALONE, LoadSpec, ThisMachine
from stallmark.driver.locust_statistics import LocustStatistics
from stallmark.driver.messages import (
    CannotStart,
    ExecutorDied,
    LocustUsers,
    Message,
    PreparedLoads,
    PrepareLoads,
    Report,
    SessionLost,
    UsersHere,
)
from stallmark.errors import StallmarkError, as_reason, as_sentence
from stallmark.processes import kill

logger = logging.getLogger(__name__)
_PLACE = "stallmark_place"
_USERS = "stallmark_users"
_PREPARING = "stallmark.driver.locustfile_loads"
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


def _facts_of(kind: type[StallmarkUser]) -> LocustUsers:
    """Return the attributes of a class of users. Raise StallmarkError if it has tasks of its own."""
    if any(task is not VirtualUserHandle.be_driven for task in kind.tasks):
        raise StallmarkError(f"{kind.__name__} has tasks of its own: give them to a class of users beside it.")
    beside = Path(getattr(sys.modules[kind.__module__], "__file__", None) or "locustfile.py").parent
    return LocustUsers(
        kind.__name__, kind.sql, str(beside), kind.shared, kind.most_users, kind.think_time_s, kind.call_timeout_s
    )


def _kinds(environment: Environment) -> list[type[StallmarkUser]]:
    return [kind for kind in environment.user_classes if issubclass(kind, StallmarkUser)]


class _Workers:
    """The workers of a test, on Locust's master. Each has a number, and continues its part of a rate while another
    worker has users."""

    def __init__(self, environment: Environment, runner: MasterRunner):
        self._environment, self._runner = environment, runner
        self._with_users: dict[str, set[str]] = defaultdict(set)
        """The ids of workers that have users, by class."""
        self._watch = gevent.Greenlet()
        runner.register_message(_USERS, self._note_users)
        environment.events.test_start.add_listener(self._begin)
        environment.events.test_stopping.add_listener(lambda **_: self._watch.kill())

    def _begin(self, **_: Any) -> None:
        """Number the workers, before they start users: no two of them are to give the same inputs to theirs."""
        self._with_users.clear()
        workers = sorted(self._runner.clients)
        for number, worker in enumerate(workers, start=1):
            self._runner.send_message(_PLACE, {"machine": number, "machines": len(workers)}, client_id=worker)
        if _kinds(self._environment):
            self._watch = self._runner.greenlet.spawn(self._report_lost, workers)

    def _note_users(self, msg: LocustMessage, **_: Any) -> None:
        """Take from a worker whether it has users of a class."""
        with_users = self._with_users[msg.data["name"]]
        (with_users.add if msg.data["has_users"] else with_users.discard)(msg.node_id)
        self._share_users(msg.data["name"])

    def _share_users(self, name: str) -> None:
        for worker in self._runner.clients:
            elsewhere = len(self._with_users[name] - {worker})
            self._runner.send_message(_USERS, {"name": name, "elsewhere": elsewhere}, client_id=worker)

    def _report_lost(self, workers: list[str]) -> None:
        """Report each worker that is lost: Locust may start its users elsewhere, and nothing takes over the rest."""
        while True:
            gevent.sleep(1)
            here = self._runner.clients
            for worker in [id for id in workers if id not in here or here[id].state == STATE_MISSING]:
                workers.remove(worker)
                report_trouble(
                    self._environment,
                    f"Worker {worker} was lost, and with it its part of what no user starts, such as transactions at a "
                    "rate: start the test again.",
                )
                for name in self._with_users:
                    self._with_users[name].discard(worker)
                    self._share_users(name)


class _Test:
    """The part of our users in a test of Locust, on this machine."""

    def __init__(self, environment: Environment, runner: Runner):
        self._environment, self._runner = environment, runner
        self._here: ThisMachine | None = None if isinstance(runner, WorkerRunner) else ALONE
        self._executors: list[Executors] = []
        self._statistics = LocustStatistics(environment, time.time())
        self._reasons: list[str] = []
        self._with_users: set[str] = set()
        """The names of classes that have users on this machine."""
        # Now, because its imports take seconds, by which a run time of Locust's would end early.
        self._preparing = start_child(_PREPARING) if _kinds(environment) else None
        if isinstance(runner, WorkerRunner):
            runner.register_message(_PLACE, self._set_place)
            runner.register_message(_USERS, self._note_elsewhere)
        environment.events.test_start.add_listener(self._start)
        environment.events.test_stop.add_listener(self._stop)
        environment.events.quitting.add_listener(self._stop)

    def _note_elsewhere(self, msg: LocustMessage, **_: Any) -> None:
        """Continue what no user starts while another worker has users."""
        for kind in _kinds(self._environment):
            if kind.__name__ == msg.data["name"] and kind.pool:
                kind.pool.note_elsewhere(msg.data["elsewhere"])

    def _set_place(self, msg: LocustMessage, **_: Any) -> None:
        self._here = ThisMachine(**msg.data)

    def _start(self, **_: Any) -> None:
        if not (kinds := _kinds(self._environment)):
            return
        try:
            if self._here is None:
                raise StallmarkError("This worker came when the test had begun: start it before.")
            for kind in kinds:
                kind.server = kind.server or os.environ.get("STALLMARK_SERVER", "")
            for server in dict.fromkeys(kind.server for kind in kinds):
                self._start_on(server, [kind for kind in kinds if kind.server == server], self._here)
        except (StallmarkError, Closed) as error:
            self._stop()
            self._environment.process_exit_code = 1
            logger.error("; ".join(self._reasons) or as_reason(error))
            options = self._environment.parsed_options
            has_page = options and not options.headless and not isinstance(self._runner, WorkerRunner)
            gevent.spawn(self._runner.stop if has_page else self._runner.quit)

    def _start_on(self, server: str, kinds: list[type[StallmarkUser]], here: ThisMachine) -> None:
        if not server:
            raise StallmarkError(f"{kinds[0].__name__} has no server: write its URL there, or set STALLMARK_SERVER.")
        users = [_facts_of(kind) for kind in kinds]
        loads = self._prepared_loads(PrepareLoads(server, users, opens=here.machine <= 1))
        executors = Executors(loads, server, partial(self._deliver, kinds), here)
        self._executors.append(executors)
        self._statistics = LocustStatistics(self._environment, time.time())
        executors.go(time.monotonic_ns())
        for kind, pool in zip(kinds, executors.pools, strict=True):
            kind.pool, kind.most_here = pool, math.ceil(kind.most_users / here.machines)

    def _prepared_loads(self, order: PrepareLoads) -> list[LoadSpec]:
        """Have a process of its own prepare the loads: what is asked of a server there stops no greenlet here."""
        process, channel = self._preparing or start_child(_PREPARING)
        self._preparing = None
        try:
            channel.send(order)
            answer: Message = channel.expect(PreparedLoads, CannotStart)
        except Closed:
            raise StallmarkError("The process that tries the load ended early: its message is above.") from None
        finally:
            channel.close()
            kill(process)
        if isinstance(answer, CannotStart):
            raise StallmarkError(as_sentence(answer.reason))
        assert isinstance(answer, PreparedLoads)
        return answer.loads

    def _stop(self, **_: Any) -> None:
        ending, self._executors = self._executors, []
        for executors in ending:
            executors.quit()
        for kind in _kinds(self._environment):
            kind.pool = None
        self._with_users.clear()

    def _deliver(self, kinds: list[type[StallmarkUser]], message: Message) -> None:
        match message:
            case UsersHere(place, running) if isinstance(self._runner, WorkerRunner):
                name, has_users = kinds[place].__name__, running > 0
                if has_users != (name in self._with_users):
                    (self._with_users.add if has_users else self._with_users.discard)(name)
                    self._runner.send_message(_USERS, {"name": name, "has_users": has_users})
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
    # Imports take seconds, by which a run time of Locust's would end early.
    gevent.get_hub().loop.update_now()
    if isinstance(runner, MasterRunner):
        _Workers(environment, runner)
    else:
        _Test(environment, runner)

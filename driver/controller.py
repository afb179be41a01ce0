"""Drives one run: starts the conductor, follows the timeline, and writes what arrives into the record."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from select import select
from typing import Any

from stallmark.driver.cluster.join import ExpectedMachines
from stallmark.driver.messages import Closed
from stallmark.driver.subprocesses import start_child
from stallmark.driver.tally import USER_SUMS, summed
from stallmark.driver.timeline import Step, Timeline
from stallmark.driver.warm_up import SETTLED_AFTER_S, SecondsSeen, Settling
from stallmark.engines.base import OwnIO
from stallmark.errors import ErrorClass, StallmarkError
from stallmark.record import histogram as hdr
from stallmark.record.writer import RecordWriter
from stallmark.transactions import find_workload
from stallmark.transactions.workload import Workload

READY_LIMIT_S = 60
FAREWELL_S = 40  # the conductor gives the executors 15 s, they give their users 10 s
REPORTED_AFTER_S = 0.75  # when a second has ended: executors report four times a second
CLOCKS_APART_MS = 50  # more than this is said: a second of one machine then is noticeably not that of another


@dataclass(frozen=True)
class LoadProgress:
    """What the run looks like at this moment, for people who wait."""

    elapsed_s: float
    ends_s: float  # at the latest, where a steady state is waited for
    step: Step
    waiting: bool  # for a steady state
    tps: float  # committed in the last whole second that has been reported
    errors: int  # failed attempts since the start


class Interrupted(Exception):
    """The run ended before its timeline did; the sentence says why."""


@dataclass
class Merger:
    """Merges the executors' partial rows into one row per second (and transaction, or executor)."""

    writer: RecordWriter
    seen: SecondsSeen = field(default_factory=SecondsSeen)
    errors: int = 0
    _transactions: dict[tuple[int, str], list[dict]] = field(default_factory=lambda: defaultdict(list))
    _users: dict[tuple[int, int], dict] = field(default_factory=dict)
    _deferred: dict[tuple[int, int], dict] = field(default_factory=dict)
    _own_io: dict[tuple[int, str], list[dict]] = field(default_factory=lambda: defaultdict(list))

    def add(self, report: dict[str, list[dict[str, Any]]]) -> None:
        for row in report["transactions"]:
            self._transactions[row["second"], row["transaction"]].append(row)
            self.seen.add(row)
        for row in report["users"]:
            if known := self._users.get((row["second"], row["executor"])):
                for name in ("running", "cpu_us", *USER_SUMS):
                    known[name] += row[name]
                known["lag_max_us"] = max(known["lag_max_us"], row["lag_max_us"])
            else:
                self._users[row["second"], row["executor"]] = row
        for row in report["deferred_queue"]:
            if known := self._deferred.get((row["second"], row["executor"])):
                for name in ("taken", "late_us"):
                    known[name] += row[name]
                for name in ("late_max_us", "waiting"):
                    known[name] = max(known[name], row[name])
            else:
                self._deferred[row["second"], row["executor"]] = row
        for row in report["transaction_io"]:
            self._own_io[row["second"], row["transaction"]].append(row)
        self.errors += sum(row["attempts"] for row in report["errors"])
        self.writer.append("errors", report["errors"])

    def write_before(self, second: float) -> None:
        """Write and forget the rows of all seconds before `second`."""
        due = sorted(key for key in self._transactions if key[0] < second)
        self.writer.append("transactions", [_merged(self._transactions.pop(key)) for key in due])
        due = sorted(key for key in self._own_io if key[0] < second)
        own_io = [self._own_io.pop(key) for key in due]
        names = ("sampled", *OwnIO._fields)
        self.writer.append("transaction_io", [rows[0] | summed(rows, names) for rows in own_io])
        for name, rows in (("users", self._users), ("deferred_queue", self._deferred)):
            settled = sorted(key for key in rows if key[0] < second)
            self.writer.append(name, [rows.pop(key) for key in settled])


def _merged(rows: list[dict]) -> dict:
    sums = ("committed", "rolled_back", "failed", "retries", "latency_us", "service_us")
    total = {name: sum(row[name] for row in rows) for name in sums}
    latency = hdr.merge([row["latency"] for row in rows])
    alike = all(row["latency"] == row["service"] for row in rows)
    service = latency if alike else hdr.merge([row["service"] for row in rows])
    return rows[0] | total | {"latency": latency, "service": service}


class Drive:
    """The load of one run. `start` returns when everybody is ready and the clock runs; then `follow` it.

    With `expected` the load comes from other machines, each of which knows its own way to the server: the "engine"
    of the order, which may hold a password, stays here. `load_machines` then says what they are, for the manifest.
    """

    def __init__(
        self,
        timeline: Timeline,
        order: dict[str, Any],
        writer: RecordWriter,
        web_port: int | None = None,
        expected: ExpectedMachines | None = None,
    ):
        self._workload = find_workload(order["workload"])
        self._writer = writer
        self._merger = Merger(writer)
        self._settling = Settling(timeline, self._merger.seen)
        self._within_s = expected.within_s if expected else 0
        if expected:
            order = {name: value for name, value in order.items() if name != "engine"}
        self._process, self._channel = start_child("stallmark.driver.locust_bridge")
        invited = asdict(expected) if expected else None
        self._channel.send("order", timeline=asdict(timeline), executor=order, web_port=web_port, expected=invited)
        self._ended = False
        self._left: Counter[str] = Counter()
        self.start_ns = 0
        self.load_machines: list[dict[str, Any]] = []

    def start(self, say: Callable[[str], None] = lambda sentence: None) -> None:
        """Wait for the executors, and before for the load machines, then start the clock."""
        patience_s = READY_LIMIT_S + self._within_s
        try:
            kind = None
            while kind != "ready":
                if not select([self._channel], [], [], patience_s)[0]:
                    raise StallmarkError(
                        f"The load driver was not ready within {patience_s:g} s: the machine is overloaded."
                    )
                kind, fields = self._channel.receive()
                if kind == "refused":
                    say(f"Load machine {fields['name']} was refused: {fields['why']}.")
                elif kind == "waiting":
                    say(f"Waiting for load machines: {fields['came']} of {fields['wanted']} are here.")
                elif kind == "ready":
                    self._welcome(fields["machines"], say)
                else:
                    raise StallmarkError(f"The load could not start: {_why(kind, fields, self._workload)}.")
        except Closed:
            raise StallmarkError("The load driver could not start; its message stands above.") from None
        self.start_ns = time.monotonic_ns()
        self._channel.send("go", start_ns=self.start_ns)

    def clock(self) -> float:
        """Seconds since the run's start. Monotonic: a wall clock set back changes nothing."""
        return (time.monotonic_ns() - self.start_ns) / 1e9

    def follow(self, show: Callable[[LoadProgress], None], check: Callable[[], None]) -> None:
        """Until the timeline's end. `check` is called several times a second and may raise Interrupted."""
        while (now := self.clock()) < self._timeline.end_s:
            self._receive(timeout=min(0.2, self._timeline.end_s - now))
            self._merger.write_before(self.clock() - SETTLED_AFTER_S)
            if self._settling.check(self.clock()):
                self._take_over()
            check()
            second = int(self.clock() - REPORTED_AFTER_S) - 1
            show(
                LoadProgress(
                    self.clock(),
                    self._timeline.end_s,
                    self._timeline.step_at(self.clock()),
                    self._settling.waiting and self.clock() < self._timeline.step_at(self.clock()).measure_s,
                    self._merger.seen.committed.get(second, 0),
                    self._merger.errors,
                )
            )

    @property
    def _timeline(self) -> Timeline:
        return self._settling.timeline

    def _take_over(self) -> None:
        """What was decided, into the load and the record."""
        self._channel.send("timeline", timeline=asdict(self._timeline))
        waited = dict(enumerate(self._settling.waited))
        steps = [
            described.changed(
                begin_s=step.begin_s, measure_s=step.measure_s, end_s=step.end_s, waited=waited.get(number)
            )
            for number, (step, described) in enumerate(
                zip(self._timeline.steps, self._writer.manifest.steps, strict=True)
            )
        ]
        self._writer.update(steps=steps)
        self._writer.save_manifest()

    def finish(self) -> None:
        """Stop the users, take their last reports and end all processes; after anything that happened."""
        try:
            self._channel.send("quit")
            deadline = time.monotonic() + FAREWELL_S
            while not self._ended and time.monotonic() < deadline:
                self._receive(timeout=0.5, farewell=True)
        except Closed:
            pass
        finally:
            self._process.kill()
            self._process.wait()
            self._channel.close()
            self._merger.write_before(float("inf"))

    def unheard(self) -> dict[str, int]:
        """Of how many transactions nobody knows how they ended: those "unfinished" when even a cancel did not help, and
        all that the last reports of "silent" executors would have told of. After `finish`."""
        return {name: self._left[name] for name in ("unfinished", "silent")}

    def notes(self) -> list[str]:
        """What is not in the record's tables, as sentences; after `finish`."""
        notes = []
        apart = max((machine["clock_within_ms"] for machine in self.load_machines), default=0)
        if apart > CLOCKS_APART_MS:
            notes.append(
                f"The clocks of the load machines were compared to within {apart:,.0f} ms only: a second of the record "
                "is not exactly the same second on all of them."
            )
        if count := self._left["unserved"]:
            notes.append(f"{count:,} arrivals were due and not yet started when the run ended: the users fell behind.")
        if count := self._left["unfinished"]:
            notes.append(f"{count:,} transactions did not end, even cancelled: their outcome is unknown.")
        if count := self._left["pending"]:
            then = ": the next run begins by clearing away what they leave open" if self._workload.opening else ""
            notes.append(
                f"{count:,} transactions of {self._workload.attended_by} were not due yet, or not begun, when the run "
                f"ended{then}."
            )
        if count := self._left["silent"]:
            notes.append(
                f"{count:,} executor processes had to be killed at the end: what their users did last is unknown."
            )
        return notes

    def _receive(self, timeout: float, farewell: bool = False) -> None:
        if not select([self._channel], [], [], timeout)[0]:
            return
        try:
            kind, fields = self._channel.receive()
        except Closed:
            if farewell:
                raise
            raise Interrupted("the load driver's conductor was killed; what it had reported is kept") from None
        if kind == "report":
            self._merger.add(fields)
            for row in fields["errors"]:
                if ErrorClass(row["error_class"]).fatal and not farewell:
                    raise Interrupted(f"the server lost data: {row['message']} ({row['code']}); check its storage")
        elif kind == "bye":
            self._left.update({name: fields[name] for name in ("unserved", "unfinished", "pending")})
        elif kind == "clocks" and self.load_machines:
            self.load_machines[fields["machine"] - 1]["clock_within_ms"] = fields["within_ms"]
        elif kind == "silent":
            self._left["silent"] += 1
        elif kind == "finished":
            self._ended = True
        elif not farewell and (kind != "stopped" or self.clock() < self._timeline.end_s):
            raise Interrupted(_why(kind, fields, self._workload))

    def _welcome(self, machines: list[dict[str, Any]], say: Callable[[str], None]) -> None:
        """The name of a machine is said and not kept: a record tells what it was, not whose."""
        for machine in machines:
            say(f"Load machine {machine['number']} is {machine.pop('name')}: {machine['cores']} cores.")
        self.load_machines = machines


def _why(kind: str, fields: dict[str, Any], workload: Workload) -> str:
    machine = fields.get("machine")
    where = f" on load machine {machine}" if machine else ""
    if kind == "died":
        by_itself = (fields["code"] or 0) > 0
        how = "ended by a fault of its own, whose message stands in its output" if by_itself else "was killed"
        part = f" and its part of {workload.attended_by}" if workload.background_sessions else ""
        return f"executor process {fields['pid']}{where} {how}, and its users{part} with it"
    if kind == "lost":
        who = workload.attended_by if fields["user"] is None else f"virtual user {fields['user']}"
        return f"{who}{where} lost the server: {fields['message']}"
    if kind == "lost machine":
        return (
            f"load machine {machine} was lost: its `stallmark worker` ended, or the network between the machines failed"
        )
    if kind == "gap":
        return f"messages of load machine {machine} were lost: the network between the machines failed"
    if kind == "apart":
        return fields["why"]
    return "the run was stopped from the web page"

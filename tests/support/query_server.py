"""A server that streams of queries execute on, and that the tests are."""

import threading

from stallmark.engines.abilities import Answer, Measures
from stallmark.errors import CallFailed, ErrorClass


class Session:
    plan_suffix = "json"
    limited: str | None = None

    def __init__(self, server: "Server"):
        self.server = server
        self.dop: int | None = None
        self.closed = False
        self.cancelled = threading.Event()

    def set_dop(self, dop):
        self.dop = dop

    def execute(self, text):
        self.server.seen.append((text, self.dop))
        what = self.server.answers.get(text, self.server.otherwise)
        if what == "hang":
            self.server.hanging.append(text)
            assert self.cancelled.wait(30)
            raise CallFailed(ErrorClass.TIMEOUT, "57014", "canceled")
        if isinstance(what, threading.Event):
            while not what.wait(0.01):
                if self.cancelled.is_set():
                    raise CallFailed(ErrorClass.TIMEOUT, "57014", "canceled")
        if isinstance(what, threading.Barrier):
            what.wait(30)
        elif isinstance(what, Exception):
            raise what
        return Answer(None, f"plan of {text}")

    def with_notes(self, answer):
        self.server.noted.append(answer.plan)
        return answer

    def measures(self, answer):
        if answer.plan == "plan of garbled":
            raise ValueError("not a plan")
        return Measures(rows=3, physical_reads=7, wait_ms={"read": 1.5}, plan_hash="abc")

    def cancel(self):
        self.cancelled.set()

    def close(self):
        self.closed = True


class Server:
    """An engine as far as streams know it. It answers at once, or by the text of a query: "hang" until it is cancelled,
    an event that is waited for, a barrier, an error."""

    dialect = "postgresql"

    def __init__(self):
        self.seen: list[tuple[str, int | None]] = []
        self.noted: list[str] = []
        self.hanging: list[str] = []
        self.answers: dict[str, object] = {}
        self.otherwise: object = None
        self.sessions: list[Session] = []
        self.most = 99
        self.applications: list[str] = []

    def queries(self, timeout_s: float, application: str) -> Session:
        self.applications.append(application)
        if len(self.sessions) >= self.most:
            raise CallFailed(ErrorClass.CONNECTION_LOST, "53300", "too many clients already")
        self.sessions.append(Session(self))
        return self.sessions[-1]

"""Users who wait for each other's locks: who blocks whom, and the deadlocks that the server has written down."""

import time
from collections import Counter
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa

from stallmark.collectors.base import TEXT, Polled, Row, polled_columns
from stallmark.collectors.mssql.collector import MssqlCollector, ask, statement
from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.engines.mssql.odbc import one_row
from stallmark.errors import CallFailed, StallmarkError
from stallmark.record.schema import column
from stallmark.redact import without_secrets

_BLOCKED = {
    "blocked": "procedure of the session that waits",
    "blocker": "procedure of the session that it waits for",
    "wait_type": "the server's name of the wait",
}
MOST_GRAPHS = 20
_PERSONAL = ("hostname", "loginname", "hostpid")
READ_WITHIN_S = 10
"""For all files: the sampler waits 15 s at the end."""
_EVERY_FILE = "system_health*.xel"


class Blocking(MssqlCollector):
    name = "blocking"
    title = "Who blocks whom"
    help = (
        "Users' sessions that wait for another session, with the procedures that both are in (blocking_session_id of "
        "sys.dm_exec_requests), sampled at random instants."
    )
    interval_s = 2.0
    polling = True
    on_azure = True
    columns = polled_columns(_BLOCKED)

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._polled = Polled(*_BLOCKED)

    def sample(self, now: float) -> list[Row]:
        rows = super().sample(now)
        seen = Counter[tuple[str | None, ...]](
            tuple(" ".join((row[name] or "").split()) for name in _BLOCKED) for row in rows
        )
        return self._polled.add(now, seen)

    def finish(self) -> list[Row]:
        return self._polled.finish()


class Deadlocks(MssqlCollector):
    name = "deadlocks"
    title = "Deadlocks"
    help = (
        "Deadlocks of users, with their graphs, from the files of the server's own session system_health, read once "
        "after the load. The server writes them up to two minutes late, so the last ones may be missing; the errors "
        "1205 that clients met are all counted."
    )
    interval_s = 3600.0
    columns = pa.schema(
        [
            column("happened", TEXT, "when, UTC"),
            column("victim", TEXT, "the procedure that the victim was in"),
            column("others", TEXT, "the procedures that the others were in"),
            column("isolation", TEXT, "isolation level of the victim"),
            column("resources", TEXT, '"brokerage.trade (ix_trade): S held, X wanted"'),
            column("graph", TEXT, "file in the record's folder; null beyond the first of them"),
        ]
    )

    def __init__(self, engine: Engine):
        super().__init__(engine)
        self._since: str | None = None
        self._first_file: str | None = None
        self._graphs: dict[str, str] = {}

    @property
    def sql(self) -> str:  # type: ignore[override]
        return sql_file.read(__package__, "deadlocks.tried")

    def sample(self, now: float) -> list[Row]:
        if self._since is None:
            self._since, self._first_file = self._moment()
        return []

    def finish(self) -> list[Row]:
        if self._since is None:  # the server was away all the time
            return []
        _, last = self._moment()
        files = [_EVERY_FILE]
        if last and self._first_file:  # the newest first, and at last those between the two
            files = [last] if last == self._first_file else [last, self._first_file, _EVERY_FILE]
        deadline = time.monotonic() + READ_WITHIN_S
        events: set[tuple[str | None, str | None]] = set()
        for file in files:
            try:
                events.update(self._events(file, deadline - time.monotonic()))
            except CallFailed as failure:
                if file == files[0]:
                    raise StallmarkError(f"the server refused the query ({failure.message})") from failure
                self.incomplete = f"older files of events were not read ({failure.message}): deadlocks may be missing"
        ordered = sorted(events, key=lambda event: event[0] or "")
        return [row for happened, event in ordered if (row := self._read(happened, event or ""))]

    def _events(self, file: str, within_s: float) -> list[tuple]:
        """Return the deadlocks in a file since the run's start, each with its time and its graph."""
        text = statement(self.name, self.major).format(since=self._since, file=file.replace("'", "''"))
        return ask(self.engine, text, max(1, round(within_s)))

    def files(self) -> dict[str, str]:
        return self._graphs

    def _moment(self) -> tuple[str, str | None]:
        """Return the server's time, and the path of the file that it writes to, or None if unknown."""
        row = one_row(self.connection.rows(sql_file.read(__package__, "deadlocks.moment")), 2)
        if row["now"] is None:
            raise StallmarkError("the server did not tell its time")
        return row["now"], _file_name(row["written"] or "")

    def _read(self, happened: str | None, text: str) -> Row | None:
        try:
            graph = ElementTree.fromstring(text).find(".//deadlock")
        except ElementTree.ParseError:  # as SSMS's templates leave names in <…>: a deadlock all the same
            unknown = {"victim": "", "others": "", "isolation": "", "resources": "unreadable", "graph": None}
            return {"happened": happened} | unknown if "stallmark" in text else None
        if graph is None or not any("stallmark" in (one.get("clientapp") or "") for one in graph.iter("process")):
            return None
        name = None
        if len(self._graphs) < MOST_GRAPHS:
            name = f"deadlocks/{len(self._graphs) + 1:02d}.xdl"
            for process in graph.iter("process"):
                for personal in _PERSONAL:
                    process.attrib.pop(personal, None)
            self._graphs[name] = without_secrets(ElementTree.tostring(graph, encoding="unicode"))
        return {"happened": happened} | shape(graph) | {"graph": name}


def shape(graph: ElementTree.Element) -> dict[str, Any]:
    """Return the victim, the others and what they fought for in a deadlock graph."""
    processes = {one.get("id"): one for one in graph.iter("process")}
    victims = [one.get("id") for one in graph.iter("victimProcess")]
    victim = processes.get(victims[0]) if victims else None
    others = [_procedure(one) for key, one in processes.items() if key not in victims]
    resources = [_resource(one) for one in graph.find("resource-list") or []]
    return {
        "victim": "" if victim is None else _procedure(victim),
        "others": ", ".join(sorted(set(others))),
        "isolation": "" if victim is None else (victim.get("isolationlevel") or "").partition(" (")[0],
        "resources": "; ".join(sorted(resources)),
    }


def _procedure(process: ElementTree.Element) -> str:
    """Return the procedure that a process was in, "schema.name"; of a batch the server says adhoc."""
    frame = process.find(".//frame")
    name = "" if frame is None else frame.get("procname") or ""
    return ".".join(name.split(".")[-2:])


def _file_name(target: str) -> str | None:
    try:
        file = ElementTree.fromstring(target).find(".//File")
    except ElementTree.ParseError:
        return None
    return None if file is None else file.get("name")


def _resource(resource: ElementTree.Element) -> str:
    # With optimized locking a transaction is locked, and the row or page of it stands inside (UnderlyingResource).
    locked = next((one for one in resource.iter() if one.get("objectname")), resource)
    name = ".".join((locked.get("objectname") or locked.tag).split(".")[-2:])
    index = f" ({locked.get('indexname')})" if locked.get("indexname") else ""
    held, wanted = (
        "/".join(sorted({one.get("mode") or "" for one in resource.iter(kind)})) for kind in ("owner", "waiter")
    )
    return f"{name}{index}: {held} held, {wanted} wanted"

"""The network between the driver and a server, and the server itself: cut, slow, restarted, replaced by another."""

import signal
import time

from benchmarks.faults import checks
from benchmarks.faults.kinds.servers import a_server, look
from benchmarks.faults.proxy import Proxy
from benchmarks.faults.round import Round
from benchmarks.faults.works import Work
from support.remote import Remote

from stallmark.cli.exit_codes import FAILED, INCOMPLETE
from stallmark.record import histogram as hdr
from stallmark.record.reader import Record

SECONDS = 6


def network(round: Round) -> None:
    """Stall, cut, lose or delay what passes between the driver and the server, for a while or for good."""
    how = round.rng.choice(["stall", "reset", "lose", "refuse", "delay"])
    for_s = round.rng.choice([0.5, 1.5, 3.0])
    with a_server(round) as (server, work):
        proxy = Proxy(server.port)
        round.tool.environment["STALLMARK_SERVER"] = server.url(port=proxy.port)
        command = _started(round, work)
        if how == "reset":
            proxy.reset()
        elif how == "refuse":
            proxy.mode = "refuse"
            proxy.reset()
        elif how == "delay":
            proxy.delay_s = round.rng.choice([0.02, 0.2])
        else:
            proxy.mode = how
        time.sleep(for_s)
        proxy.mode, proxy.delay_s = "pass", 0.0
        if how == "lose":
            proxy.reset()  # a stream with a hole in it is none
        round.did.append(f"network: {how} for {for_s} s")
        record = _judged(round, server, work, command)
        if how == "stall" and record and record.incomplete_because is None:
            [step] = round.reported(record)["runs"][0]["steps"]
            inside, whole = step["latency_ms"]["max"], _longest_ms(record)
            # One that lasts beyond the measured interval ends behind it.
            longest = whole if step["gaps"] else inside
            if not step["invalid"] and (longest is None or longest < 1000 * for_s - 300):
                round.problems.append(f"a stall of {for_s} s is no longer than {longest} ms in the percentiles")
        proxy.close()
    round.left()


def _longest_ms(record: Record) -> float:
    """Return the longest latency of a whole run, also of what ended after the last second that was measured."""
    rows = record.table("transactions")
    used = hdr.total(rows["latency_gaps"].combine_chunks(), rows["latency_counts"].combine_chunks()).nonzero()[0]
    return float(hdr.TOPS_US[used[-1]]) / 1000


def restarts(round: Round) -> None:
    """Restart the server under a run: fast, at once, or killed."""
    how = round.rng.choice([signal.SIGINT, signal.SIGQUIT, signal.SIGKILL])
    away_s = round.rng.choice([0.0, 1.0, 3.0])
    with a_server(round) as (server, work):
        command = _started(round, work)
        server.stop(how)
        time.sleep(away_s)
        if how == signal.SIGKILL:
            time.sleep(0.5)  # its processes end, and let go of the shared memory
        server.start()
        round.did.append(f"the server restarted after {how.name}, away for {away_s} s")
        record = _judged(round, server, work, command)
        if record and record.incomplete_because is None:
            [step] = round.reported(record)["runs"][0]["steps"]
            if not step["invalid"]:
                round.problems.append("the server was restarted while it was measured, and the step is not marked")
    round.left()


def failover(round: Round) -> None:
    """Have the address lead to another server, which has the same database and none of the run's commits."""
    with a_server(round) as (first, work), a_server(round, "other") as (second, _):
        proxy = Proxy(first.port)
        round.tool.environment["STALLMARK_SERVER"] = first.url(port=proxy.port)
        command = _started(round, work)
        before = transfers(second)
        proxy.target = second.port
        proxy.reset()
        round.did.append("failed over to another server")
        code = round.ended(command)
        record = round.record()
        if record is None:
            round.problems.append(f"no record: {command.text.strip()[-300:]}")
            return
        if record.incomplete_because is None:
            [step] = round.reported(record)["runs"][0]["steps"]
            if not step["invalid"]:
                round.problems.append(f"another server answered, and the step is not marked; it ended with {code}")
        else:
            round.reported(record)
        counts, both = checks.Counts.of(record), transfers(first) + transfers(second) - before
        round.found(checks.counted(counts, {"transfer": both}))
        look(round, second, None)
        round.next("run", round.tool.scenario(**work.changes | {"measure": "1s"}, reset="continue"))
        look(round, second, round.record())
        proxy.close()
    round.left()


def transfers(server: Remote) -> int:
    """Return the transfers that a server has counted."""
    import psycopg

    with psycopg.connect(server.url()) as connection:
        return connection.execute("SELECT count(*) FROM bank.history").fetchone()[0]  # type: ignore[index]


def _started(round: Round, work: Work):
    """Start a run; return when it has been measured for a moment."""
    scenario = round.tool.scenario(**work.changes | {"measure": f"{SECONDS}s"}, reset="continue")
    command = round.tool.start_anew("run", scenario)
    round.measuring(command)
    time.sleep(round.rng.random())
    return command


def _judged(round: Round, server: Remote, work: Work, command) -> Record | None:
    """Look at the end of a run by URL whose server was away, and at the next one."""
    code = round.ended(command)
    record = round.record()
    if record is None:
        round.problems.append(f"no record: {command.text.strip()[-300:]}")
        return None
    if code not in (0, FAILED, INCOMPLETE):
        round.problems.append(f"it ended with {code}: {command.text.strip()[-300:]}")
    if (code == 0) != (record.incomplete_because is None):
        round.problems.append(f"it ended with {code}, and the record says “{record.incomplete_because}”")
    if record.incomplete_because and not any(
        word in record.incomplete_because for word in ("server", "connection", "session")
    ):
        round.problems.append(f"the reason is “{record.incomplete_because}”")
    if record.incomplete_because:
        round.reported(record)
    look(round, server, record)
    round.next("run", round.tool.scenario(**work.changes | {"measure": "1s"}, reset="continue"))
    look(round, server, round.record())
    return record

"""Signals to the processes of a build, a run, a restore and a check."""

from collections.abc import Iterator
from datetime import datetime

from benchmarks.faults import checks, works
from benchmarks.faults.round import Round
from benchmarks.faults.works import START, WORKS, Phase, Strike, Work, draw
from support.tool import Command, Tool

from stallmark.record.reader import Record

ENDS = "KILL INT STOP TERM"
RUN = {
    "command": ENDS, "group": "INT", "conductor": "KILL STOP", "executor": "KILL STOP", "server": "KILL STOP",
    "backend": "KILL STOP", "guard": "KILL STOP",
}  # fmt: skip
BUILD = {
    "command": ENDS, "group": "INT", "loader": "KILL STOP", "server": "KILL STOP", "backend": "KILL STOP",
    "guard": "KILL STOP", "initdb": "KILL INT STOP",
}  # fmt: skip


def build(round: Round) -> None:
    """Disturb a build; the next one completes it, with the tables that an undisturbed one makes."""
    name = round.rng.choice(list(WORKS))
    work, (_, tables) = WORKS[name], works.as_built(round.prepared, name)
    round.did.append(name)
    strike = draw(round.rng, BUILD, works.BUILD)
    code, command, hit = round.struck(strike, "build", *work.database)
    if hit:
        round.found(checks.reason(strike.victim, strike.how, code, command.text, None))
    round.next("build", *work.database)
    round.found(checks.tables(round.tables(work), tables))
    round.commits(work, None)
    round.left()


def run(round: Round) -> None:
    """Disturb a run at any moment, its start included."""
    name = round.rng.choice(list(WORKS))
    work, there = round.take(name)
    victims = {part: how for part, how in RUN.items() if name != "queries" or part not in works.OF_DRIVER}
    strike, reset = draw(round.rng, victims, works.RUN), round.rng.choice(["continue", "restore"])
    round.did.append(f"{name}, reset: {reset}")
    disturbed(round, work, there.tables, strike, reset)


def restore(round: Round) -> None:
    """Disturb a run while it restores its database; the next restore brings back the tables as they were built."""
    name = round.rng.choice(["bank", "mail", "brokerage"])
    work, there = round.take(name)
    victims = {"command": "KILL INT STOP TERM", "group": "INT"}
    strike = draw(round.rng, victims, (Phase("a restore", _restores, 0.4),))
    round.did.append(name)
    code, command, _ = round.struck(strike, "run", round.tool.scenario(**work.changes, reset="restore"))
    record = round.record()
    round.found(checks.reason(strike.victim, strike.how, code, command.text, record))
    if record:
        round.reported(record)
    _again(round, work, there.tables, "restore")


def _restores(tool: Tool, command: Command) -> bool:
    return any(path for name in ("data.new", "data.old") for path in tool.home.glob(f"embedded/*/{name}"))


def check(round: Round) -> None:
    """Disturb a check; another one then finds all well."""
    name = round.rng.choice(["bank", "brokerage", "several loads"])
    work, _ = round.take(name)
    round.did.append(name)
    strike = draw(round.rng, {"command": ENDS, "group": "INT", "server": "KILL STOP", "guard": "KILL"}, (START,))
    code, command, hit = round.struck(strike, "check", *work.database)
    if hit:
        round.found(checks.reason(strike.victim, strike.how, code, command.text, None))
    round.next("check", *work.database)
    round.left()


def disturbed(round: Round, work: Work, tables: dict, strike: Strike, reset: str, more: dict | None = None) -> None:
    """Disturb a run of the scenario with `more` changes, and look at all that it leaves and at the next one."""
    changes = work.changes | (more or {})
    code, command, hit = round.struck(strike, "run", round.tool.scenario(**changes, reset=reset))
    record = round.record()
    if hit:
        round.found(checks.reason(strike.victim, strike.how, code, command.text, record))
    if record:
        found = round.reported(record)
        if hit and strike.how == "STOP" and strike.victim == "executor" and record.incomplete_because is None:
            round.found(_paused(found, record, strike))
    round.commits(work, record, checks.LOST_S.get(strike.victim, 0.0) if strike.how == "KILL" else 0.0)
    _again(round, work, tables, reset, more)


def _paused(report: dict, record: Record, strike: Strike) -> Iterator[str]:
    """Hold the longest response time of a whole run against the pause of its executor, where that was within it."""
    began = datetime.fromisoformat(record.manifest.started).timestamp()
    for run in report.get("runs", []):
        for step in run["steps"]:
            within = (
                began + step["begin_s"] + 0.5 < strike.at and strike.at + strike.pause_s < began + step["end_s"] - 1
            )
            longest = step["latency_ms"]["max"]
            if within and not step["invalid"] and (longest is None or longest < 1000 * strike.pause_s - 300):
                yield f"a pause of {strike.pause_s} s is no longer than {longest} ms in the percentiles"


def _again(round: Round, work: Work, tables: dict, reset: str, more: dict | None = None) -> None:
    """Run once more, without any cleaning."""
    short = {"measure": "1s"} if work.changes.get("measure") else {}
    round.next("run", round.tool.scenario(**work.changes | (more or {}) | short, reset=reset))
    if again := round.record():
        if again.incomplete_because:
            round.problems.append(f"the next run is incomplete: {again.incomplete_because}")
        elif reset == "continue":
            round.commits(work, again)
    if reset == "restore":
        round.found(checks.tables(round.tables(work, restored=True), tables))
    round.left()

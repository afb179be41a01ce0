"""Faults of files: records and arrays, damaged or taken away."""

import os
import sys
import time
from typing import Any

import psutil
from benchmarks.faults import checks, works
from benchmarks.faults.kinds.signals import RUN, disturbed
from benchmarks.faults.round import Round, Skipped
from benchmarks.faults.works import START, Phase, Strike, copied, draw
from support.tool import Command, Tool

from stallmark.cli.exit_codes import FAILED, INCOMPLETE
from stallmark.lab import block_device_parts

# Signals to commands that read or change a record: what they had begun is whole or absent, and figures stay.

COMMAND = {"command": "KILL INT STOP TERM", "group": "INT"}


def report(round: Round) -> None:
    """Disturb a report; the next one has the figures that it always had."""
    folder = _records(round)
    before = round.next("report", folder, "--json", codes=(0, 5))
    strike = draw(round.rng, COMMAND, (START,))
    code, command, hit = round.struck(strike, "report", folder, *round.rng.choice([[], ["--json"]]))
    if hit:
        round.found(checks.reason(strike.victim, strike.how, code, command.text, None))
    after = round.next("report", folder, "--json", codes=(0, 5))
    if _figures(before) != _figures(after):
        round.problems.append("the figures of the record have changed")
    round.left()


def attach(round: Round) -> None:
    """Disturb an attachment; it is there whole afterwards, or not at all, and can be made."""
    folder = _records(round)
    [record] = round.tool.runs.glob("*/*/manifest.json")
    day = record.parent.parent.name[:8]
    hours = [f"{day[:4]}-{day[4:6]}-{day[6:]}T{hour:02}:{minute:02}:{second:02}Z,{hour * minute}"
             for hour in range(24) for minute in range(60) for second in range(60)]  # fmt: skip
    (round.folder / "array.csv").write_text("\n".join(["time,reads/s", *hours]))
    arguments = ("attach", folder, "array.csv", "--time-column", "time")
    strike = draw(round.rng, COMMAND, (START,))
    code, command, hit = round.struck(strike, *arguments)
    if hit:
        round.found(checks.reason(strike.victim, strike.how, code, command.text, None))
    found, wrong = checks.in_json(round.next("report", folder, "--json", codes=(0, 5)))
    round.found(wrong)
    round.next(*arguments, *(["--replace"] if _attached(found) else []))
    found, wrong = checks.in_json(round.next("report", folder, "--json", codes=(0, 5)))
    round.found(wrong)
    if _attached(found) != {"array"}:
        round.problems.append("what was attached once is not in the report once")
    round.left()


def _attached(report: dict[str, Any]) -> set[str]:
    """Return the names of what is attached, in a report of one load or of several."""
    runs = [run for view in (report, *report.get("loads", {}).values()) for run in view.get("runs", [])]
    return {one["name"] for run in runs for one in run["external"]}


def _records(round: Round) -> str:
    """Have the records of an undisturbed run; return the folder of the experiment."""
    there = round.undisturbed(round.rng.choice(["bank", "several loads", "queries"]))
    copied(there.runs, round.tool.runs)
    [folder] = round.tool.runs.iterdir()
    return str(folder)


def _figures(said: str) -> Any:
    found, _ = checks.in_json(said)
    return found


# Hooks between variants, and arrays beneath the server.

ARRAY = {"data": {"spindles": 8, "read_ms": 1, "write_ms": 1, "sync_ms": 0.5, "mb_per_s": 300}}
TAKES_S = 2.0
HOOK = "import subprocess, sys; subprocess.run(['sleep', sys.argv[1]])"


def emulated(round: Round) -> None:
    """Disturb a run on an emulated array, whose state is shared memory."""
    work, there = round.take("bank")
    victims = {name: RUN[name] for name in ("command", "group", "server", "guard", "executor")}
    changes = {"emulated_array": ARRAY | {"wal": ARRAY["data"]}}
    disturbed(round, work, there.tables, draw(round.rng, victims, works.RUN), "restore", changes)


def block_device(round: Round) -> None:
    """Disturb the creation of an array that is a block device; none of it is left when it is destroyed."""
    if why := block_device_parts.missing_needs():
        raise Skipped(f"no array as a block device: {why}")
    create = ("array", "create", "one", "--size", "64MiB")
    strike = draw(round.rng, {"command": "KILL INT STOP TERM", "group": "INT"}, (START,))
    command = round.tool.start_anew(*create)
    hit = strike.carry_out(round.rng, round.tool, command)
    round.did.append(f"array: {strike}" if hit else f"{strike} came too late")
    code = _created(round, command)
    round.found(checks.said(code, command.text))
    if hit:
        round.found(checks.reason(strike.victim, strike.how, code, command.text, None))
    if code:
        round.gone()
        round.next("array", "list", codes=(0, FAILED))
    round.next("array", "destroy", "one", codes=(0, FAILED) if code else (0,))
    again = round.tool.start_anew(*create)
    if _created(round, again):
        round.problems.append(f"next, array create: {again.text.strip()[-300:]}")
    round.next("array", "destroy", "one")
    round.left()


def _created(round: Round, command: Command) -> int:
    """Return the exit code of a creation. The processes of an array that was created stay."""
    try:
        return command.process.wait(60) or 0
    except psutil.TimeoutExpired:
        round.problems.append(f"array create had not ended after 60 s: {command.text.strip()[-300:]}")
        command.process.kill()
        return command.process.wait()


def hooks(round: Round) -> None:
    """Disturb a run while a command before a variant is at work, or that command."""
    work, _ = round.take("bank")
    told = round.folder / "told"
    hook = {"command": [sys.executable, "-c", HOOK, str(TAKES_S)]}
    tell = "import sys; open(sys.argv[1], 'w').write(sys.argv[2] + '|' + sys.argv[3])"
    at_end = {"command": [sys.executable, "-c", tell, str(told), "{state}", "{because}"]}
    variants = [{"name": "one", "before": hook}, {"name": "two", "before": hook}]
    changes = work.changes | {"measure": "1s", "variants": variants, "at_end": at_end}
    victims = {"command": "KILL INT STOP TERM", "group": "INT", "hook": "KILL STOP", "its child": "KILL"}
    drawn = draw(round.rng, victims, (Phase("the command before a variant", _has_hook, 0.8 * TAKES_S),))
    second = round.rng.random() < 0.5
    command = round.tool.start_anew("run", round.tool.scenario(**changes, reset="continue"))
    if second:
        _wait_for_the_second(round, command)
    if drawn.victim in ("hook", "its child"):
        hit = drawn.moment.wait(round.tool, command) and _strike(round, drawn)
    else:
        hit = drawn.carry_out(round.rng, round.tool, command)
    round.did.append(f"hook of variant {1 + second}: {drawn}" if hit else "came too late")
    code = round.ended(command)
    record = round.record()
    _ended_truly(round, drawn, code, command.text, record, hit, second)
    if record:
        round.reported(record)
    if drawn.how != "KILL" or drawn.victim != "command":
        state, _, because = told.read_text().partition("|") if told.exists() else ("nothing", "", "")
        whole = code == 0
        if whole != (state == "complete") or (not whole and not because):
            round.problems.append(f"the command at the end was told {state} {because!r}, and it ended with {code}")
    round.commits(work, record, checks.LOST_S["command"])
    round.next("run", round.tool.scenario(**work.changes | {"measure": "1s"}, reset="continue"))
    round.left()


def _ended_truly(round: Round, drawn: Strike, code: int, text: str, record, hit: bool, second: bool) -> None:
    if not hit:
        return
    if drawn.victim in ("hook", "its child"):
        if drawn.how == "KILL" and drawn.victim == "hook":
            if code not in (FAILED, INCOMPLETE) or "signal 9" not in " ".join(text.split()):
                round.problems.append(f"the hook was killed, and it ended with {code}: {text.strip()[-300:]}")
            if second and record and not record.manifest.ended:
                round.problems.append("the experiment ended before its second variant, and its record does not say so")
        elif code:
            round.problems.append(f"the hook ended well, and the command with {code}: {text.strip()[-300:]}")
    elif drawn.how in ("INT", "TERM") and second and record and not record.manifest.ended:
        round.problems.append("it was stopped before its second variant, and its record does not say so")
    elif drawn.how in ("INT", "TERM") and code not in (130, 143):
        round.problems.append(f"it ended with {code} after SIG{drawn.how}")


def _hooks(tool: Tool) -> list[psutil.Process]:
    """Return the running hooks."""
    found = []
    for process in tool.processes():
        try:
            if HOOK in process.cmdline():
                found.append(process)
        except psutil.Error:
            pass
    return found


def _has_hook(tool: Tool, command: Command) -> bool:
    return bool(_hooks(tool))


def _wait_for_the_second(round: Round, command: Command) -> None:
    """Wait until the hook of the first variant has come and gone."""
    for there in (True, False):
        while command.process.poll() is None and bool(_hooks(round.tool)) is not there:
            time.sleep(0.02)


def _strike(round: Round, drawn: Strike) -> bool:
    hooks = _hooks(round.tool)
    if drawn.victim == "its child":
        hooks = [child for hook in hooks for child in hook.children()]
    if not hooks:
        return False
    if drawn.how == "STOP":
        hooks[0].suspend()
        time.sleep(drawn.pause_s)
        hooks[0].resume()
    else:
        os.kill(hooks[0].pid, 9)
    return True

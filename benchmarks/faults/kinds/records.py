"""Signals to commands that read or change a record: what they had begun is whole or absent, and figures stay."""

from typing import Any

from benchmarks.faults import checks
from benchmarks.faults.round import Round
from benchmarks.faults.strikes import START, draw
from benchmarks.faults.works import copied

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

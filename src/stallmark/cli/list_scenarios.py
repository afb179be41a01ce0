"""`stallmark list`: list the scenarios."""

import json
from pathlib import Path

import click

from stallmark.cli.command import Command
from stallmark.cli.common import escape, item, json_option, out, print_markup


@click.command(cls=Command, name="list")
@click.argument("scenarios", nargs=-1)
@json_option
def list_scenarios(scenarios: tuple[str, ...], as_json: bool) -> None:
    """List the scenarios: the question, needs and duration of each.

    SCENARIOS are names of `stallmark list` or your own files; without them all are listed.

    The duration is an estimate for the embedded PostgreSQL, corrected by earlier runs in stallmark-runs.
    """
    from stallmark.experiment.status import pace
    from stallmark.scenarios.read import read_any_scenario, shipped

    here = pace(Path("stallmark-runs"))
    known = [read_any_scenario(name) for name in scenarios or shipped()]
    words = [
        {k: getattr(s, k) for k in ("name", "title", "answers", "needs")} | _history(s) | _takes(s, here) for s in known
    ]
    if as_json:
        click.echo(json.dumps(words))
        return
    for word in words:
        print_markup(out, f"[bold]{word['name']}[/]  {escape(word['title'])}")
        for label in ("answers", "needs", "history", "takes"):
            if word.get(label):
                item(f"    {label:8}", escape(word[label]))


def _history(scenario) -> dict[str, str | float]:
    """Return the depth of the brokerage's history; nothing for a scenario without a brokerage."""
    from stallmark.record.manifest.workload import trade_history
    from stallmark.report.text.terms import history_line
    from stallmark.scenarios.model import ProbeScenario

    if isinstance(scenario, ProbeScenario):
        return {}
    history = trade_history(scenario.contents.name, scenario.contents.scale)
    if history is None:
        return {}
    return {"history": history_line(history), "trades_per_account": history.trades_per_account}


def _takes(scenario, pace: float) -> dict[str, str | float]:
    from stallmark.experiment.estimate import estimate
    from stallmark.experiment.target import Target
    from stallmark.report.text import experiment
    from stallmark.scenarios.model import ProbeScenario

    absent = isinstance(scenario, ProbeScenario) or Target().is_absent(scenario.contents)
    expected = estimate(scenario, to_build=float(absent), to_copy=absent, pace=pace)
    text = experiment.takes(
        expected.total_s,
        expected.build_s,
        at_most=expected.ends_sooner,
        asks=expected.asks,
        longest_s=expected.longest_s,
    )
    return {"takes": text, "takes_s": round(expected.total_s)}

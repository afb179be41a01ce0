"""`stallmark list`: list the scenarios."""

import json

import click

from stallmark.cli.common import Command, escape, item, json_option, out, tell


@click.command(cls=Command, name="list")
@json_option
def list_scenarios(as_json: bool) -> None:
    """List the scenarios: what each answers, needs and takes."""
    from stallmark.scenarios.read import read_any_scenario, shipped

    scenarios = [read_any_scenario(name) for name in shipped()]
    if as_json:
        click.echo(
            json.dumps([{k: getattr(s, k) for k in ("name", "title", "answers", "needs", "takes")} for s in scenarios])
        )
        return
    for s in scenarios:
        tell(out, f"[bold]{s.name}[/]  {escape(s.title)}")
        for label, text in (("answers", s.answers), ("needs", s.needs), ("takes", s.takes)):
            item(f"    {label:8}", escape(text))

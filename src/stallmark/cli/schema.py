"""`stallmark schema`: the JSON schema of scenario files, the format of run records, and the metrics of a step."""

import json

import click

from stallmark.cli.command import Command


@click.command(cls=Command)
@click.option("--record", is_flag=True, help="Of run records: every table, column, unit and meaning, and the manifest.")
@click.option("--metrics", is_flag=True, help="The metrics of a step: title, unit, formula, and what may be limited.")
@click.option("--markdown", is_flag=True, help="As a page to read.")
def schema(record: bool, metrics: bool, markdown: bool) -> None:
    """Print the JSON schema of scenario files, with --record the format of run records, with --metrics the metrics."""
    if record and metrics:
        raise click.UsageError("--record and --metrics are given: leave one out.")
    if metrics:
        from stallmark.analysis import metrics as of_steps

        text = of_steps.markdown() if markdown else json.dumps(of_steps.declarations(), indent=1)
    elif record:
        from stallmark.collectors import data_format

        text = data_format.markdown() if markdown else json.dumps(data_format.in_json(), indent=1)
    else:
        from stallmark.scenarios.json_schema import json_schema, reference

        text = reference() if markdown else json.dumps(json_schema(), indent=1)
    click.echo(text, nl=not markdown)

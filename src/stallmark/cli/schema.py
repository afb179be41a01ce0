"""`stallmark schema`: the JSON schema of scenario files, and the format of run records."""

import json

import click

from stallmark.cli.command import Command


@click.command(cls=Command)
@click.option("--record", is_flag=True, help="Of run records: every table, column, unit and meaning, and the manifest.")
@click.option("--markdown", is_flag=True, help="As a page to read.")
def schema(record: bool, markdown: bool) -> None:
    """Print the JSON schema of scenario files, or with --record the format of run records."""
    if record:
        from stallmark.collectors import data_format

        text = data_format.markdown() if markdown else json.dumps(data_format.in_json(), indent=1)
    else:
        from stallmark.scenarios.json_schema import json_schema, reference

        text = reference() if markdown else json.dumps(json_schema(), indent=1)
    click.echo(text, nl=not markdown)

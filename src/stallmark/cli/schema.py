"""`stallmark schema`: the JSON schema of scenario files."""

import json

import click

from stallmark.cli.common import Command


@click.command(cls=Command)
@click.option("--markdown", is_flag=True, help="The reference page instead.")
def schema(markdown: bool) -> None:
    """Print the JSON schema of scenario files, for editors and validators."""
    from stallmark.scenarios.json_schema import json_schema, reference

    click.echo(reference() if markdown else json.dumps(json_schema(), indent=1), nl=not markdown)

"""`stallmark schema`: the JSON schema of scenario files, the format of run records, and the metrics of a step."""

import json

import click

from stallmark import capabilities
from stallmark.cli.command import Command
from stallmark.errors import StallmarkError


@click.command(cls=Command)
@click.option(
    "--record",
    is_flag=True,
    help="Print the format of run records: every table, column, unit and meaning, and the manifest.",
)
@click.option("--workload", is_flag=True, help="Print the JSON schema of workload.yaml, for a folder of your own SQL.")
@click.option("--markdown", is_flag=True, help="Print Markdown, a page to read.")
@click.option(
    "--metrics", is_flag=True, help="Print the metrics of a step as a page: units, formulas, and which can have limits."
)
def schema(record: bool, workload: bool, markdown: bool, metrics: bool) -> None:
    """Print the JSON schema of scenario files, or with --record the format of run records."""
    if metrics:
        from stallmark.analysis.metrics import reference

        text, markdown = reference(), True
    elif record:
        from stallmark.collectors import data_format

        text = data_format.markdown() if markdown else json.dumps(data_format.in_json(), indent=1)
    elif workload:
        if not (made := capabilities.parts("schema")):
            raise StallmarkError("This Stallmark lacks the capability `own_sql`, which has workloads: install it.")
        text, markdown = json.dumps(made[0](), indent=1), False
    else:
        from stallmark.scenarios.model import json_schema, reference

        text = reference() if markdown else json.dumps(json_schema(), indent=1)
    click.echo(text, nl=not markdown)

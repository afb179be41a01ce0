"""The option of `stallmark new` that begins a workload of one's own SQL."""

import shlex
from pathlib import Path

import click

from stallmark.cli.command import Command
from stallmark.cli.common import escape, out, print_markup
from stallmark.errors import StallmarkError

SCHEMA = Path(__file__).with_name("workload.schema.json")
"""The schema that `stallmark schema --workload` prints: editors find it by the first line of workload.yaml."""
STARTER = Path(__file__).parent / "shop"
"""The files of a workload that works on the database that its setup.sql makes."""


@click.command(cls=Command)
@click.option("--workload", type=click.Path(path_type=Path, file_okay=False), metavar="FOLDER",
              help="Write an example of your own SQL to FOLDER, instead of a scenario.")  # fmt: skip
def sql_options(workload: Path | None) -> Path | None:
    if workload is None:
        return None
    if workload.exists() and any(workload.iterdir()):
        raise StallmarkError(f"{workload} holds something: name another folder, or empty it.")
    for file in sorted(STARTER.rglob("*")):
        if file.is_file():
            target = workload / file.relative_to(STARTER)
            target.parent.mkdir(parents=True, exist_ok=True)
            # The starter's first line names the schema by a relative path, which leads nowhere from the user's folder.
            text = file.read_text(encoding="utf-8").replace(f"../{SCHEMA.name}", str(SCHEMA), 1)
            target.write_text(text, encoding="utf-8")
    named = shlex.quote(str(workload))
    print_markup(
        out, escape(f"{workload} holds a small shop: change it, then stallmark run --sql {named} --server URL")
    )
    return workload

"""`stallmark new`: begin your own scenario."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from stallmark.cli.command import Extensible
from stallmark.cli.common import escape, out, print_markup
from stallmark.errors import StallmarkError

OF_THE_SHIPPED = r"^(title|answers|needs):.*\n(?:[ \t].*\n)*"
"""The keys that describe the copied scenario's purpose, which an edited copy no longer has."""


@click.command(cls=Extensible)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.option("--from", "source", default="buffer-pool", show_default=True, help="Name of the scenario to copy.")
def new(file: Path | None, source: str, added: Sequence[Any]) -> None:
    """Write a scenario to FILE for editing: a copy of one of `stallmark list`."""
    if file is None:
        # The option of a capability has written the files already.
        if added:
            return
        raise click.UsageError("Name a FILE for the scenario.")
    from stallmark.scenarios.model import FILE, SHIPPED
    from stallmark.scenarios.read import locate, read_any_scenario

    name = re.sub(r"[^a-z0-9]+", "-", file.stem.lower())[:60].strip("-") or "mine"
    # Refuses an invalid scenario before the file is written.
    read_any_scenario(source)
    given = locate(source).read_text(encoding="utf-8-sig").splitlines()
    lines = [line for line in given if not line.startswith("# yaml-language-server:")]
    written = f'"{name}"' if name in ("true", "false", "null") or not name[0].isalpha() else name
    text = re.sub(r"^name:.*$", f"name: {written}", "\n".join(lines), count=1, flags=re.MULTILINE)
    text = re.sub(OF_THE_SHIPPED, "", text, flags=re.MULTILINE)
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(f"# yaml-language-server: $schema={SHIPPED / FILE}\n{text}\n")
    except FileExistsError:
        raise StallmarkError(f"{file} exists: name another file, or remove it.") from None
    read_any_scenario(str(file))
    print_markup(
        out, escape(f"{file} holds a copy of {source}: change it, then stallmark run {shlex.quote(str(file))}")
    )

"""`stallmark copies`: the backups that runs have left on a SQL Server, and their removal."""

import json

import click

from stallmark import format
from stallmark.cli.command import Command
from stallmark.cli.common import escape, json_option, out, print_markup, server_option
from stallmark.errors import StallmarkError


@click.command(cls=Command)
@server_option(required=True)
@click.option("--remove", is_flag=True, help="Remove the backups of the database in the URL.")
@json_option
def copies(server: str, remove: bool, as_json: bool) -> None:
    """List the backups that `reset: restore` left on a SQL Server; with --remove, remove those of a database.

    The copy of an embedded database is in the database's folder, and is removed with it.
    """
    from stallmark.engines import open_engine
    from stallmark.engines.mssql.backup import kept_copies
    from stallmark.engines.mssql.backup import remove_kept_copy as remove_file
    from stallmark.engines.mssql.engine import MssqlEngine

    engine = open_engine(server)
    # Copies of embedded databases are in the databases' own folders.
    if not isinstance(engine, MssqlEngine):
        raise StallmarkError("Copies are kept on SQL Server alone: name one, mssql://user@host:1433/database.")
    copies = kept_copies(engine)
    # Copies of other databases stay: their owners may need them.
    gone = [copy for copy in copies if remove and copy.database == engine.address.database]
    for copy in gone:
        remove_file(engine, copy)
    if as_json:
        click.echo(json.dumps([copy._asdict() | {"removed": copy in gone} for copy in copies], indent=2, default=str))
        return
    for copy in copies:
        facts = [
            escape(copy.path),
            format.size(copy.bytes) if copy.bytes is not None else "size not known",
            f"{copy.finished:%Y-%m-%d %H:%M}" if copy.finished else "time not known",
            *(["removed"] if copy in gone else []),
        ]
        print_markup(out, f"[bold]{escape(copy.database or 'database not known')}[/]  {', '.join(facts)}")
    if not copies:
        print_markup(out, "None.")

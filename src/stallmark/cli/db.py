"""`stallmark db …` and `copies`: databases, listed and removed, and the backups that runs left on a SQL Server."""

import difflib
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.markup import escape

from stallmark import format
from stallmark.cli.build import build, check
from stallmark.cli.command import Command, Group
from stallmark.cli.options import json_option, server_option
from stallmark.cli.output import out, print_markup, print_plain
from stallmark.errors import CallFailed, StallmarkError, WrongOption

if TYPE_CHECKING:
    from stallmark.engines.base import Engine
    from stallmark.engines.postgres.embedded_engine import FoundDatabase
    from stallmark.loaders.ledger import Entry

_NO_NAME = "The URL of a server names its database: leave NAME out."


@click.group(cls=Group)
def db() -> None:
    """Build, check, list and remove databases of Stallmark."""


db.add_command(build)
db.add_command(check)

_server = server_option(without="Default: the embedded PostgreSQL.")
_data_dir = click.option(
    "--data-dir", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Additional folder to search."
)


@db.command(name="list")
@_server
@_data_dir
@json_option
def list_(server: str | None, data_dir: Path | None, as_json: bool) -> None:
    """List the databases: the contents, place, size and last use of each.

    Embedded databases are searched below STALLMARK_HOME; with --server, only the database in the URL is read.
    """
    if server:
        with _opened(server) as engine:
            listed = [server_facts] if (server_facts := _in_server(engine)) else []
    else:
        listed = [_facts(database) for database in _embedded(data_dir)]
    if as_json:
        click.echo(json.dumps(listed, indent=2, default=str))
        return
    for facts in listed:
        print_markup(out, f"[bold]{escape(facts['name'])}[/]  {escape(_in_words(facts))}")
    if not listed:
        place = "this database" if server else " and ".join(map(str, _places(data_dir)))
        print_markup(out, f"None in {escape(place)}: `stallmark db build` makes one.")


@db.command()
@click.argument("name", required=False)
@_server
@_data_dir
@click.option("--yes", is_flag=True, help="Remove without asking; required with --server.")
def remove(name: str | None, server: str | None, data_dir: Path | None, yes: bool) -> None:
    """Remove a database for good: an embedded one by the NAME or folder that `list` shows.

    With --server only the schemas that Stallmark made are dropped. The database itself and everything else in it stay.
    """
    if server:
        if name:
            raise click.UsageError(_NO_NAME)
        _drop(server, yes=yes)
        return
    if not name:
        raise click.UsageError("Missing argument 'NAME': `stallmark db list` shows them.")
    database = _find_database(name, data_dir)
    if database.in_use_by:
        raise StallmarkError(f"{database.name} is in use by process {database.in_use_by}: wait for it or stop it.")
    text = f"{database.name} in {database.folder.parent} ({format.size(database.bytes)})"
    if not yes:
        if not sys.stdin.isatty():
            raise StallmarkError(f"{text} is not removed: without a terminal to ask at, add --yes.")
        click.confirm(f"Remove {text}?", abort=True)
    database.remove()
    print_markup(out, escape(f"{text} is gone."))


def _places(data_dir: Path | None) -> list[Path]:
    from stallmark.experiment.target import home

    return [home() / "embedded", *([data_dir] if data_dir else [])]


def _embedded(data_dir: Path | None) -> "list[FoundDatabase]":
    from stallmark.engines.postgres.embedded_engine import find

    return list(find(*_places(data_dir)))


def _find_database(name: str, data_dir: Path | None) -> "FoundDatabase":
    from stallmark.engines.postgres.embedded_engine import find

    databases = _embedded(data_dir)
    folder = Path(name)
    if database := next((known for known in databases if known.name == name), None):
        return database
    # Also a database outside the searched folders, by its path.
    if database := next((known for known in find(folder) if known.folder == folder), None):
        return database
    near = difflib.get_close_matches(name, [database.name for database in databases], 1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else "`stallmark db list` shows all databases."
    raise StallmarkError(f"{name} is not a database of Stallmark: {hint}")


def _facts(database: "FoundDatabase") -> dict[str, Any]:
    return {
        "name": database.name,
        "folder": database.folder,
        "wal_folder": database.wal_folder,
        "holds": list(map(_with_depth, database.holds)),
        "bytes": database.bytes,
        "used": database.used.isoformat(timespec="seconds"),
        "in_use_by": database.in_use_by,
    }


def _with_depth(holds: Mapping[str, Any]) -> dict[str, Any]:
    """Return the contents of a database, with the depth of a brokerage's history."""
    from stallmark.record.manifest.workload import trade_history

    history = trade_history(holds.get("workload"), holds.get("scale"))
    return dict(holds) | ({"trades_per_account": history.trades_per_account} if history else {})


def _in_server(engine: "Engine") -> dict[str, Any] | None:
    from stallmark.loaders import ledger

    entry = ledger.read(engine)
    if entry is None:
        return None
    holds = {"workload": entry.identity.workload, "scale": dict(entry.identity.scale), "seed": entry.identity.seed}
    return {
        "name": entry.identity.workload,
        "holds": [_with_depth(holds)],
        "bytes": engine.bytes_used() or None,
        "complete": entry.complete,
        "driven": entry.driven,
    }


def _in_words(facts: dict[str, Any]) -> str:
    text = [
        ", ".join([part["workload"], *(f"{name} {format.exact(value)}" for name, value in _measures(part).items())])
        for part in facts["holds"]
    ] or ["content not noted by the version that built it"]
    text.append(_size(facts["bytes"]))
    if "complete" in facts:
        text += [] if facts["complete"] else ["not loaded to its end"]
        text += ["load was driven against it"] if facts["driven"] else []
    else:
        text.append(
            f"in use by process {facts['in_use_by']}" if facts["in_use_by"] else f"used {format.moment(facts['used'])}"
        )
        text.append(f"in {facts['folder']}")
    return "; ".join(text)


def _measures(holds: Mapping[str, Any]) -> dict[str, float]:
    trades = holds.get("trades_per_account")
    return holds["scale"] | ({"trades per account": trades} if trades else {})


@contextmanager
def _opened(url: str) -> Iterator["Engine"]:
    from stallmark.engines import open_engine

    with closing(open_engine(url)) as engine, engine.few_logins():
        # Refuses an unreachable or too old server before anything is read from it.
        engine.identity()
        yield engine


def _drop(url: str, *, yes: bool) -> None:
    from stallmark.loaders import ledger
    from stallmark.schema.deploy import drop_schemas, telling_blockers
    from stallmark.transactions import find_workload, known_name

    with _opened(url) as engine:
        entry = ledger.read(engine)
        if entry is None:
            raise StallmarkError("The database holds nothing that Stallmark built: nothing was removed.")
        # Unlike an embedded database, one on a server may be used by others: no prompt, only --yes.
        if not yes:
            raise StallmarkError(_unconfirmed(entry, engine))
        if reason := engine.not_writable_reason(()):
            raise StallmarkError(reason)
        workload = find_workload(known_name(entry.identity.workload))  # another version may have made it
        try:
            with engine.hold(), telling_blockers(engine, print_plain):
                gone = drop_schemas(engine, [workload])
        except CallFailed as error:
            raise StallmarkError(
                f"Not all was dropped: {error.message.rstrip('.')}. Remove what keeps it, then give this command again."
            ) from error
    print_markup(out, escape(f"Dropped: schemas {', '.join(gone)}. All else in the database is as it was."))


def _unconfirmed(entry: "Entry", engine: "Engine") -> str:
    size_bytes = engine.bytes_used()
    size = f", {format.size(size_bytes)} in all" if size_bytes else ""
    return f"Without --yes nothing is dropped: the database holds {entry.identity.workload}{size}."


def _size(size_bytes: int | None) -> str:
    return "size not known" if size_bytes is None else format.size(size_bytes)


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
        raise WrongOption("Copies are kept on SQL Server alone: name one, mssql://user@host:1433/database.")
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
            _size(copy.bytes),
            f"{copy.finished:%Y-%m-%d %H:%M}" if copy.finished else "time not known",
            *(["removed"] if copy in gone else []),
        ]
        print_markup(out, f"[bold]{escape(copy.database or 'database not known')}[/]  {', '.join(facts)}")
    if not copies:
        print_markup(out, "None.")

"""`stallmark db …`: databases that Stallmark has built: make, check, list and remove them."""

import difflib
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stallmark import format
from stallmark.cli.build import build
from stallmark.cli.check import check
from stallmark.cli.command import Group
from stallmark.cli.common import escape, json_option, out, print_markup, print_plain, server_option
from stallmark.errors import CallFailed, StallmarkError

if TYPE_CHECKING:
    from stallmark.engines.base import Engine
    from stallmark.engines.postgres.embedded.engine import FoundDatabase
    from stallmark.loaders.ledger import Entry

_NO_NAME = "A server by URL holds one database: leave NAME out, and name the database in the URL."


@click.group(cls=Group)
def db() -> None:
    """Databases that Stallmark has built: build, check, list, remove."""


db.add_command(build)
db.add_command(check)

_server = server_option(without="Without it: the embedded PostgreSQL.")
_data_dir = click.option(
    "--data-dir", type=click.Path(path_type=Path, exists=True, file_okay=False), help="Look in this folder as well."
)


@db.command(name="list")
@_server
@_data_dir
@json_option
def list_(server: str | None, data_dir: Path | None, as_json: bool) -> None:
    """List the databases: what each holds, where it lies, how large it is, when it was used last.

    Those of the embedded PostgreSQL are looked for below STALLMARK_HOME; with --server, in the database it names.
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
@click.option("--yes", is_flag=True, help="Do not ask. With --server nothing is removed without it.")
def remove(name: str | None, server: str | None, data_dir: Path | None, yes: bool) -> None:
    """Remove a database for good: an embedded one by the NAME or folder that `list` shows.

    With --server only what Stallmark made is dropped. The database itself and what others have in it stay.
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
            raise StallmarkError(f"{text} is not removed without --yes, as there is no terminal to ask at.")
        click.confirm(f"Remove {text}?", abort=True)
    database.remove()
    print_markup(out, escape(f"{text} is gone."))


def _places(data_dir: Path | None) -> list[Path]:
    from stallmark.experiment.target import home

    return [home() / "embedded", *([data_dir] if data_dir else [])]


def _embedded(data_dir: Path | None) -> "list[FoundDatabase]":
    from stallmark.engines.postgres.embedded.engine import find

    return list(find(*_places(data_dir)))


def _find_database(name: str, data_dir: Path | None) -> "FoundDatabase":
    from stallmark.engines.postgres.embedded.engine import find

    databases = _embedded(data_dir)
    folder = Path(name)
    if database := next((one for one in databases if one.name == name), None):
        return database
    if database := next((one for one in find(folder) if one.folder == folder), None):
        return database
    near = difflib.get_close_matches(name, [database.name for database in databases], 1, cutoff=0.4)
    hint = f"did you mean {near[0]}?" if near else "`stallmark db list` shows what there is."
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
        "bytes": engine.bytes_used(),
        "complete": entry.complete,
        "driven": entry.driven,
    }


def _in_words(facts: dict[str, Any]) -> str:
    text = [
        ", ".join([part["workload"], *(f"{name} {format.exact(value)}" for name, value in _measures(part).items())])
        for part in facts["holds"]
    ] or ["content not noted by the version that built it"]
    text.append(format.size(facts["bytes"]))
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
        engine.identity()  # an unreachable or too old server is refused here
        yield engine


def _drop(url: str, *, yes: bool) -> None:
    from stallmark.loaders import ledger
    from stallmark.schema.deploy import telling_blockers
    from stallmark.schema.own import drop_schemas
    from stallmark.transactions import find_workload, known_name

    with _opened(url) as engine:
        entry = ledger.read(engine)
        if entry is None:
            raise StallmarkError("The database holds nothing that Stallmark built: nothing was removed.")
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
    size = format.size(engine.bytes_used())
    return f"Without --yes nothing is dropped: the database holds {entry.identity.workload}, {size} in all."

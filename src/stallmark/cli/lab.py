"""The commands of the lab: an emulated array as a block device of this machine."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import humanize

from stallmark.cli.common import as_bytes, err, escape, json_option, out, tell

if TYPE_CHECKING:
    from stallmark.storage.block_device import Facts
    from stallmark.storage.block_device.lifecycle import Lab


@click.group()
def lab() -> None:
    """An EMULATED array as a block device: create, list, status, change, destroy (Linux, as root)."""


def _array_options(command: Callable) -> Callable:
    for option in reversed(
        [
            click.option("--spindles", type=int, help="Disks [default: 12]."),
            click.option("--rpm", type=float, help="Turns of a disk per minute [default: 10000]."),
            click.option("--seek-ms", type=float, help="Of a disk, over random places [default: 4]."),
            click.option("--mb-per-s", type=float, help="Of a disk, one place after the other [default: 150]."),
            click.option("--sync-ms", type=float, help="What a flush takes [default: 0]."),
            click.option("--cache", callback=as_bytes, metavar="SIZE", help="Flash read cache: 1GiB."),
            click.option("--tier", callback=as_bytes, metavar="SIZE", help="Flash tier: 1GiB."),
        ]
    ):
        command = option(command)
    return command


@lab.command()
@click.argument("name")
@click.option("--size", required=True, callback=as_bytes, help="Of the block device: 20GiB. It is taken from the disk.")
@_array_options
@json_option
def create(name: str, size: int, as_json: bool, **array: Any) -> None:
    """Make a block device that is an emulated array; print its path.

    Put a file system on it, and a database on that. Everything measured on it is EMULATED.
    """
    from stallmark.cli.lab_output import long_way, model_of

    made = _lab(name)
    facts = made.create(size, model_of(array))
    if warning := long_way(made.done().path_ms):
        tell(err, f"[yellow]{warning}[/]")
    _show(facts, as_json, f"A new block device of {humanize.naturalsize(facts.size, binary=True)}.")


@lab.command()
@click.argument("name")
@_array_options
@click.option("--no-flash", is_flag=True, help="Neither cache nor tier.")
@json_option
def change(name: str, as_json: bool, no_flash: bool, **array: Any) -> None:
    """Make another array of it, while it is in use; what is not named stays as it is.

    What is on the block device stays; cache and tier are empty. This is what a variant's `before` command calls.
    """
    from stallmark.cli.lab_output import model_of

    found = _lab(name)
    facts = found.change(model_of(array, found.facts.model, no_flash=no_flash))
    _show(facts, as_json, "Changed; its flash is empty.")


@lab.command()
@click.argument("name")
@json_option
def status(name: str, as_json: bool) -> None:
    """Say what the array is, whether it works, and what it has done since it is what it is."""
    from stallmark.cli import lab_output as words

    found = _lab(name)
    facts, why = found.facts, found.broken()
    if as_json:
        known = words.as_json(name, facts, why)
        if not why:
            done = found.done()
            known |= done._asdict() | {"counters": asdict(done.counters)}
        click.echo(json.dumps(known))
        return
    tell(out, escape(words.sentence(facts, why)))
    if not why:
        for sentence in words.sentences(found.done()):
            tell(out, sentence)


@lab.command(name="list")
@json_option
def list_(as_json: bool) -> None:
    """List the labs of this machine, also what a crash has left of one."""
    from stallmark.cli import lab_output as words
    from stallmark.storage.block_device.lifecycle import labs

    found = [(each.name, *_looked_at(each)) for each in labs(_home())]
    if as_json:
        click.echo(json.dumps([words.as_json(*one) for one in found]))
        return
    for name, facts, why in found:
        tell(out, escape(words.sentence(facts, why) if facts else words.unreadable(name, str(why))))
    if not found:
        tell(out, "None: `stallmark lab create` makes one.")


@lab.command()
@click.argument("name")
def destroy(name: str) -> None:
    """Remove a lab and all that is on it, or what a crash has left of one."""
    _lab(name).destroy()
    tell(out, f"The lab {name} is gone, with all that was on it.")


def _home() -> Path:
    from stallmark.experiment.target import home

    return home() / "lab"


def _lab(name: str) -> "Lab":
    from stallmark.storage.block_device.lifecycle import Lab

    return Lab(_home(), name)


def _looked_at(lab: "Lab") -> tuple["Facts | None", str | None]:
    """What it is, and what is broken; one that cannot be read is not in the way of the others."""
    from stallmark.storage.block_device import LabError

    try:
        return lab.facts, lab.broken()
    except LabError as why:
        return None, str(why)


def _show(facts: "Facts", as_json: bool, what: str) -> None:
    from stallmark.cli import lab_output as words

    if as_json:
        click.echo(json.dumps(words.as_json(facts.name, facts, None)))
    else:
        tell(out, escape(f"{words.sentence(facts, None)} {what}"))
        tell(out, f"[bold]{facts.loop}[/]")

"""`stallmark array …`: the commands for emulated arrays as block devices, and their output."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from stallmark import format
from stallmark.cli.command import Group
from stallmark.cli.options import as_bytes, json_option
from stallmark.cli.output import err, escape, out, print_markup
from stallmark.engines.abilities import Examined
from stallmark.errors import StallmarkError
from stallmark.stats.thresholds import LATE

if TYPE_CHECKING:
    from stallmark.lab.block_device import ArrayWork, BlockDeviceArray
    from stallmark.storage.block_devices import ArrayFacts
    from stallmark.storage.emulator.models import ArrayModel

_SLOWER = 0.1
"""Share by which a read at the block device may exceed the array's own time: the accuracy to which the device is
verified.
"""


@click.group(cls=Group)
def array() -> None:
    """Create, list, inspect, change and destroy EMULATED arrays as block devices (Linux, as root)."""


def _array_options(command: Callable) -> Callable:
    for option in reversed(
        [
            click.option("--spindles", type=int, help="Number of disks [default: 12]."),
            click.option("--rpm", type=float, help="Rotations of a disk per minute [default: 10000]."),
            click.option(
                "--seek-ms", type=float, help="Mean seek time of a disk at random positions, in ms [default: 4]."
            ),
            click.option("--mb-per-s", type=float, help="Sequential throughput of a disk, in MB/s [default: 150]."),
            click.option("--sync-ms", type=float, help="Duration of a flush, in ms [default: 0]."),
            click.option(
                "--cache", callback=as_bytes, metavar="SIZE", help="Size of the flash read cache, such as 1GiB."
            ),
            click.option("--tier", callback=as_bytes, metavar="SIZE", help="Size of the flash tier, such as 1GiB."),
        ]
    ):
        command = option(command)
    return command


@array.command()
@click.argument("name")
@click.option(
    "--size",
    required=True,
    callback=as_bytes,
    help="Size of the block device, such as 20GiB; it uses that much disk space.",
)
@_array_options
@json_option
def create(name: str, size: int, as_json: bool, **options: Any) -> None:
    """Create a block device that is an emulated array; print its path.

    Make a file system on the device, and a database on that. Everything measured on it is EMULATED.
    """
    made = _array(name)
    facts = made.create(size, model_of(options))
    if warning := long_way(made.work_done().path_ms):
        print_markup(err, f"[yellow]{warning}[/]")
    _show(facts, as_json, f"A new block device of {format.size(facts.size)}.")


@array.command()
@click.argument("name")
@_array_options
@click.option("--no-flash", is_flag=True, help="Remove flash cache and tier.")
@json_option
def change(name: str, as_json: bool, no_flash: bool, **options: Any) -> None:
    """Change the array's model while it is in use; omitted options keep their values.

    The contents of the block device stay; cache and tier are emptied. Made for the `before` command of a variant.
    """
    array = _array(name)
    facts = array.change(model_of(options, array.facts.model, no_flash=no_flash))
    _show(facts, as_json, "Changed; its flash is empty.")


@array.command()
@click.argument("name")
@json_option
def status(name: str, as_json: bool) -> None:
    """Show the array's model, whether it works, and its work since the last change."""
    array = _array(name)
    facts, reason = array.facts, array.broken()
    if as_json:
        known = _for_machines(name, facts, reason)
        if not reason:
            done = array.work_done()
            known |= done._asdict() | {"counters": asdict(done.counters)}
        click.echo(json.dumps(known))
        return
    print_markup(out, escape(sentence(facts, reason)))
    if not reason:
        for line in sentences(array.work_done()):
            print_markup(out, line)


@array.command(name="list")
@json_option
def list_(as_json: bool) -> None:
    """List the emulated arrays of this machine, including the remains of crashed ones."""
    from stallmark.lab.block_device import arrays

    states = [(array.name, *_looked_at(array)) for array in arrays(_home())]
    if as_json:
        click.echo(json.dumps([_for_machines(*state) for state in states]))
        return
    for name, facts, reason in states:
        print_markup(out, escape(sentence(facts, reason) if facts else f"{name} (EMULATED), broken: {reason}"))
    if not states:
        print_markup(out, "None: `stallmark array create` makes one.")


@array.command()
@click.argument("name")
def destroy(name: str) -> None:
    """Remove an array with everything on it, or the remains of a crashed one."""
    _array(name).destroy()
    print_markup(out, f"The emulated array {name} is gone, with all that was on it.")


def examine() -> Iterator[Examined]:
    """Yield the finding whether this machine supports an emulated array as a block device."""
    from stallmark.lab.block_device_parts import missing_needs

    if reason := missing_needs():
        yield Examined("emulated array", "limited", f"not as a block device: {reason}.")
    else:
        yield Examined("emulated array", "ok", "possible as a block device (`stallmark array create`).")


def _home() -> Path:
    from stallmark.experiment.target import home

    return home() / "arrays"


def _array(name: str) -> "BlockDeviceArray":
    from stallmark.lab.block_device import BlockDeviceArray

    return BlockDeviceArray(_home(), name)


def _looked_at(array: "BlockDeviceArray") -> tuple["ArrayFacts | None", str | None]:
    """Return the facts of an array, and its fault; one that cannot be read does not hide the others."""
    from stallmark.storage.block_devices import BlockDeviceError

    try:
        return array.facts, array.broken()
    except BlockDeviceError as why:
        return None, str(why)


def _show(facts: "ArrayFacts", as_json: bool, title: str) -> None:
    if as_json:
        click.echo(json.dumps(_for_machines(facts.name, facts, None)))
    else:
        print_markup(out, escape(f"{sentence(facts, None)} {title}"))
        print_markup(out, f"[bold]{facts.loop}[/]")


def model_of(options: Mapping[str, Any], base: "ArrayModel | None" = None, *, no_flash: bool = False) -> "ArrayModel":
    """Return `base` (DISK_SHELF) changed by the options; None is one not given.

    Raises StallmarkError for an array that is not possible.
    """
    from stallmark.storage.emulator.models import DISK_SHELF, FlashCache, FlashTier

    sizes = {name: options[name] for name in ("cache", "tier") if options[name] is not None}
    if len(sizes) + no_flash > 1:
        raise StallmarkError("An array has a cache, a tier or neither: give one of --cache, --tier and --no-flash.")
    given = {name: value for name, value in options.items() if value is not None and name not in sizes}
    try:
        if sizes or no_flash:
            given |= {"cache": None, "tier": None}
        if "cache" in sizes:
            given["cache"] = FlashCache(sizes["cache"])
        elif "tier" in sizes:
            given["tier"] = FlashTier(sizes["tier"])
        return replace(base or DISK_SHELF, **given)
    except ValueError as error:
        raise StallmarkError(str(error)) from None


def sentence(facts: "ArrayFacts", why_broken: str | None) -> str:
    """Return a description of the array on one line."""
    state = f"broken: {why_broken}; `stallmark array destroy {facts.name}` removes it" if why_broken else facts.loop
    return f"{facts.name} (EMULATED), {state}: {in_words(facts.model)}."


def in_words(model: "ArrayModel") -> str:
    """Return a model in words: its disks and its flash."""
    turns = f"{model.rpm:,.0f} rpm, {model.seek_ms:g} ms a seek" if model.rpm else f"{model.read_ms:g} ms a read"
    disks = f"{model.spindles} spindle{'s' if model.spindles > 1 else ''} of {turns}, {model.mb_per_s:g} MB/s each"
    if model.flash is None:
        return f"{disks}, no flash"
    use = "cache" if model.cache else "tier"
    return f"{disks}, a flash {use} of {format.size(model.flash.size)}"


def sentences(done: "ArrayWork") -> Iterator[str]:
    """Yield the sentences on an array's work since it was created or last changed."""
    counters, path_ms, waited_ms = done
    yield "Since it was created, or last changed:"
    for name in ("read", "write"):
        count, ns = getattr(counters, f"{name}s"), getattr(counters, f"{name}_ns")
        mean = f", {ns / count / 1e6:.2f} ms each" if count else ""
        yield f"{count:,} {name}s{mean}."
    yield f"These times include {path_ms:.2f} ms for the path to the array; the array waits that much less."
    if waited_ms is not None and waited_ms > counters.read_ns / counters.reads / 1e6 * (1 + _SLOWER):
        yield (
            f"At the block device a read took {waited_ms:.2f} ms: the path took longer than measured, and readers "
            "waited longer than the array reports."
        )
    if (flash := counters.flash) is not None:
        share = f", {flash.reads / counters.reads:.0%} of all" if counters.reads else ""
        yield f"Flash: {format.size(flash.used_bytes)} filled; {flash.reads:,} reads served{share}."
    if counters.late:
        ios = counters.reads + counters.writes + counters.syncs
        slow = ": this machine was too slow for it" if counters.late > LATE * ios else ""
        yield f"{counters.late:,} of {ios:,} I/Os took longer than the array would have{slow}."


def long_way(path_ms: float) -> str | None:
    """Return a warning if the path to the array alone takes longer than a complete flash read."""
    from stallmark.storage.emulator.models import FlashCache

    if path_ms < FlashCache.read_ms:
        return None
    return (
        f"The way to the array and back takes {path_ms:.2f} ms, longer than a flash read: was this machine busy? "
        "Destroy it and create it again when it is quiet."
    )


def _for_machines(name: str, facts: "ArrayFacts | None", why_broken: str | None) -> dict[str, Any]:
    """Return the facts of an array for `--json`; `facts` is None if the array cannot be read."""
    return {
        "name": name,
        "emulated": True,
        "device": facts and facts.loop,
        "size_bytes": facts and facts.size,
        "broken": why_broken,
        "array": facts and asdict(facts.model),
    }

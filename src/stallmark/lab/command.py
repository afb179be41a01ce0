"""`stallmark server` for a SQL Server of your own in a container, `stallmark selftest`, which is `stallmark doctor
--deep`, and `stallmark array` for emulated arrays as block devices."""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from rich.markup import escape

from stallmark import format
from stallmark.cli.command import Command, Group
from stallmark.cli.options import as_bytes, json_option, out_option, target_options
from stallmark.cli.output import ShowInSentences, err, out, print_markup
from stallmark.engines.abilities import Examined
from stallmark.errors import WrongOption
from stallmark.experiment.progress import Show
from stallmark.redact import markdown
from stallmark.stats.thresholds import LATE

if TYPE_CHECKING:
    from stallmark.experiment.target import Target
    from stallmark.lab.block_device import ArrayWork, BlockDeviceArray
    from stallmark.storage.block_devices import ArrayFacts
    from stallmark.storage.emulator import ArrayModel


@click.group(cls=Group)
def server() -> None:
    """Start, list and stop SQL Servers in containers."""


@server.command()
@click.option("--version", type=click.Choice(["2017", "2019", "2022", "2025"]), default="2022", show_default=True,
              help="Version of SQL Server.")  # fmt: skip
@click.option("--name", default="stallmark", show_default=True, help="Name of the container.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    default=1433,
    show_default=True,
    help="Port on 127.0.0.1, reachable from this machine only.",
)
@click.option(
    "--memory",
    default="4GiB",
    show_default=True,
    callback=as_bytes,
    help="Memory of the container; SQL Server gets 80 %.",
)
@click.option("--cpus", type=click.FloatRange(0, min_open=True), help="Number of cores [default: all].")
@click.option(
    "--data", type=click.Path(path_type=Path), help="Folder for all files of the server [default: a Docker volume]."
)
@click.option("--log", type=click.Path(path_type=Path), help="Folder for transaction logs, on another device.")
@click.option(
    "--device-read-iops",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum reads per second on each disk under the folders.",
)
@click.option(
    "--device-write-iops", type=click.IntRange(1), metavar="N", help="Maximum writes per second on each disk."
)
@click.option(
    "--device-read-bps",
    callback=as_bytes,
    metavar="SIZE",
    help="Maximum bytes read per second on each disk, such as 200MB.",
)
@click.option(
    "--device-write-bps", callback=as_bytes, metavar="SIZE", help="Maximum bytes written per second on each disk."
)
@click.option("--edition", help="Edition of SQL Server, as in MSSQL_PID [default: Developer].")
@click.option("--accept-eula", is_flag=True, help="Confirm that you have read and accept Microsoft's licence.")
@json_option
def up(
    accept_eula: bool, as_json: bool, memory: int, device_read_iops, device_write_iops, device_read_bps,
    device_write_bps, **wishes,
) -> None:  # fmt: skip
    """Start Microsoft's SQL Server in a container, and wait until it accepts logins."""
    from stallmark.lab import server_container
    from stallmark.lab.server_order import DeviceLimits, ServerOrder

    limits = DeviceLimits(device_read_iops, device_write_iops, device_read_bps, device_write_bps)
    order = ServerOrder(memory_bytes=memory, limits=limits, **wishes)
    ready = server_container.up(order, Show(err), accept_eula=accept_eula)
    if as_json:
        click.echo(
            json.dumps(
                {"name": order.name, "server": str(ready.identity), "url": ready.url}
                | {"url_file": str(ready.url_file), "password_file": str(ready.password_file)}
            )
        )
        return
    print_markup(out, f"{ready.identity} takes logins on 127.0.0.1:{order.port}.")
    print_markup(
        out, f"The password of sa is in {escape(str(ready.password_file))}, which only you can read. Use it so:"
    )
    print_markup(out, f"  stallmark doctor --server @{escape(str(ready.url_file))}")
    print_markup(
        out, f"  SQLCMDPASSWORD=$(cat {escape(str(ready.password_file))}) stallmark doctor --server '{ready.url}'"
    )


@server.command()
@click.argument("name", default="stallmark")
@click.option("--remove-data", is_flag=True, help="Also remove the databases and the password.")
def down(name: str, remove_data: bool) -> None:
    """Stop a server and remove its container; its data stays without --remove-data."""
    from stallmark.lab import server_container

    for sentence in server_container.down(name, remove_data=remove_data):
        print_markup(out, escape(sentence))


@server.command(name="list")
@json_option
def list_servers(as_json: bool) -> None:
    """List the servers that `up` made on this machine."""
    from stallmark.lab import server_container

    servers = server_container.servers()
    if as_json:
        click.echo(json.dumps(servers))
        return
    for facts in servers:
        memory = format.size(facts["memory_bytes"])
        print_markup(
            out,
            f"[bold]{facts['name']}[/]  SQL Server {facts['version']}, {facts['state']}, 127.0.0.1:{facts['port']}, "
            f"{memory}, data in {escape(str(facts['data']))}",
        )
    if not servers:
        print_markup(out, "None: `stallmark server up` starts one.")


# The trial of everything: `stallmark selftest`, and the options that it adds to `stallmark doctor`.

_PARAMETERS = ("out_dir", "seconds", "keep", "cap_memory")
"""The parameters of a selftest alone."""


def _options(command: Callable) -> Callable:
    @out_option("Folder for the run record of the test.")
    @click.option(
        "--seconds",
        type=click.IntRange(1),
        default=30,
        show_default=True,
        help="Seconds for which the test drives users.",
    )
    @click.option("--keep", is_flag=True, help="Keep the database that the test builds.")
    @click.option(
        "--cap-memory", is_flag=True,
        help="Allow the test to lower the memory of the whole server for a moment.",
    )  # fmt: skip
    @wraps(command)
    def with_options(**options):
        return command(**options)

    return with_options


@click.command(cls=Command)
@target_options
@_options
@json_option
def selftest(**options) -> None:
    """Try everything on a server in a few minutes and show what worked: the same as `stallmark doctor --deep`.

    The database in the URL must exist and be empty. The output contains no host name and no password, so that you can
    paste it into an issue.

    With --cap-memory the memory of the whole server is lowered by a tenth for a moment, which also empties its plan
    cache on many versions. Without --cap-memory this check is skipped.
    """
    try_everything(**options)


@click.command()
@click.option(
    "--deep", is_flag=True, help="Also build, drive and check small databases; the options below belong to --deep."
)
@_options
@click.pass_context
def deep(context: click.Context, deep: bool, **options: Any) -> Callable | None:
    """With --deep everything is tried, in a few minutes. The database in --server must then exist and be empty, and is
    emptied again afterwards."""
    if deep:
        return partial(try_everything, **options)
    if given := [
        parameter for parameter in _PARAMETERS if context.get_parameter_source(parameter) is ParameterSource.COMMANDLINE
    ]:
        option = "--out" if given[0] == "out_dir" else f"--{given[0].replace('_', '-')}"
        raise click.UsageError(f"{option} is an option of --deep: add --deep, or leave it out.")
    return None


def try_everything(target: "Target", out_dir: Path, seconds: int, keep: bool, cap_memory: bool, as_json: bool) -> None:
    """Run the selftest, print what worked, and exit with its code."""
    from stallmark.lab import selftest_checks

    show = ShowInSentences(err)
    result = selftest_checks.selftest(target, out_dir, show, seconds=seconds, keep=keep, may_cap_memory=cap_memory)
    if as_json:
        checks = [check.in_json() for check in result.checks]
        click.echo(json.dumps({"facts": dict(result.facts), "checks": checks, "record": str(result.record)}))
    else:
        for name, fact in result.facts.items():
            click.echo(f"- {name}: {markdown(str(fact))}")
        click.echo("\n| check | result | |\n|---|---|---|")
        for check in result.checks:
            click.echo(f"| {check.subject} | {check.state} | {markdown(check.result)} |")
        click.echo("")
    sys.exit(result.exit_code)


# `stallmark array …`: the commands for emulated arrays as block devices, and their output.

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
    from stallmark.storage.emulator import DISK_SHELF, FlashCache, FlashTier

    sizes = {name: options[name] for name in ("cache", "tier") if options[name] is not None}
    if len(sizes) + no_flash > 1:
        raise WrongOption("An array has a cache, a tier or neither: give one of --cache, --tier and --no-flash.")
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
        raise WrongOption(str(error)) from None


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
    from stallmark.storage.emulator import FlashCache

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

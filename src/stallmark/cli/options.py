"""The options that commands share: of a server, a workload, times, records and forms of output."""

import difflib
import math
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from stallmark.errors import StallmarkError, WrongOption, as_reason, mistake
from stallmark.redact import holds_secret

T = TypeVar("T")


def _refuse_password(context: click.Context, _: click.Parameter, url: str | None) -> str | None:
    if not url:
        return None
    from stallmark.experiment.target import server_url

    # In the environment only processes of the same user can read it.
    if context.get_parameter_source("server") is ParameterSource.COMMANDLINE and holds_secret(url):
        raise WrongOption(
            "A password on the command line can be read by all users of this machine: leave it out of --server, "
            "and put it into PGPASSWORD, ~/.pgpass or SQLCMDPASSWORD, or the whole URL into STALLMARK_SERVER or a file "
            "that only you can read (--server @FILE)."
        )
    return server_url(url)


def server_option(*, without: str = "", required: bool = False) -> Callable:
    return click.option(
        "--server",
        envvar="STALLMARK_SERVER",
        metavar="URL",
        required=required,
        callback=_refuse_password,
        help="URL of your server: mssql://user@host:1433/database or postgresql://user@host:5432/database, or @FILE "
        f"with the URL in it (or STALLMARK_SERVER). {without}".rstrip(),
    )


def target_options(command: Callable) -> Callable:
    @server_option(without="Default: the embedded PostgreSQL.")
    @click.option(
        "--drop-caches", is_flag=True, help="Allow a cold start to empty the caches of all users of the server."
    )
    @click.option("--shared", is_flag=True, help="Allow other users' tables and sessions in the database.")
    @click.option("--data-dir", type=click.Path(path_type=Path), help="Folder of the embedded database.")
    @click.option(
        "--wal-dir", type=click.Path(path_type=Path), help="Folder of the embedded database's WAL, on another device."
    )
    @click.option(
        "--port", type=click.IntRange(1, 65535), help="Port on 127.0.0.1 at which the embedded database also listens."
    )
    @wraps(command)
    def with_target(server, data_dir, wal_dir, port, drop_caches, shared, **others):
        from stallmark.experiment.target import Target

        return command(target=Target(server, data_dir, wal_dir, port, drop_caches, shared), **others)

    return with_target


class FiniteRange(click.FloatRange):
    """A range of numbers without infinity and "nan", which click takes for a number in any range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


def parsing(parse: Callable[[str], T]) -> Callable[[click.Context, click.Parameter, str | None], T | None]:
    """Make a function that parses an option a click callback; its error is a mistake in that option."""

    def callback(context: click.Context, option: click.Parameter, text: str | None) -> T | None:
        try:
            return None if text is None else parse(text)
        except (ValueError, StallmarkError) as error:
            raise click.BadParameter(as_reason(error), context, option) from None

    return callback


@parsing
def as_bytes(text: str) -> int:
    """Parse a size option such as 4GiB or 200MB."""
    from stallmark.quantities import parse_size

    return parse_size(text, like="4GiB or 200MB")


@parsing
def as_seconds(text: str) -> float:
    """Parse a duration option such as 24h or 90min, above zero."""
    from stallmark.quantities import parse_seconds

    if (seconds := parse_seconds(text)) <= 0:
        raise ValueError(f"{text} is not a duration")
    return seconds


def _show_times_in(context: click.Context, option: click.Parameter, name: str | None) -> str | None:
    """Show times in the zone of that name until the command ends."""
    if name is None:
        return None
    from stallmark import format
    from stallmark.record.formats.dates import find_zone, local_zone_name

    if name.lower() == "local":
        name = local_zone_name()
    try:
        context.with_resource(format.times_in(find_zone(name)))
    except StallmarkError as error:
        raise click.BadParameter(as_reason(error), context, option) from None
    return name


def timezone_option(*name: str, help: str = "Time zone of the output: Europe/Berlin, +01:00, local [default: UTC]."):
    """Add the time zone of a command's output; a command that passes a `name` gets the zone as an argument."""
    return click.option(
        "--timezone", *name, metavar="ZONE", callback=_show_times_in, expose_value=bool(name), help=help
    )


def schedule_options(command: Callable) -> Callable:
    """Give a command the `start` and `interval_s` of a recording of iostat without times."""
    interval = click.option(
        "--interval",
        "interval_s",
        callback=as_seconds,
        metavar="TIME",
        help="With --start: time from report to report, such as 15s.",
    )(command)
    return click.option(
        "--start", metavar="TIME", help="Time of the first report of iostat without -t: 2026-03-02T10:00."
    )(interval)


def workload_options(*, as_built: bool = False) -> Callable:
    """Give a command a `choice`, and the `scenario` if its argument is one instead of a workload.

    With `as_built` a choice without `--scale` has no scale: that of the database counts. `{workloads}` in the command's
    help becomes the names of all workloads.
    """
    from stallmark import format
    from stallmark.transactions import WORKLOADS

    def with_options(command: Callable) -> Callable:
        @click.argument("workload")
        @click.option(
            "--scale",
            "scale",
            default="",
            metavar="MEASURE=N[,…]",
            help="Size of the database, such as branches=100, customers=1000,days=10 or size=20GB; several workloads "
            "take the measures of each.",
        )
        @click.option(
            "--seed", type=click.IntRange(0), default=1, show_default=True, help="Seed of the generated data."
        )
        @wraps(command)
        def with_choice(workload, scale, seed, **others):
            from stallmark.schema import parts_of

            if set(parts_of(workload)) <= set(WORKLOADS):
                is_unscaled = as_built and not scale
                choice = unscaled_choice(workload, seed) if is_unscaled else choice_of(workload, scale, seed)
                return command(choice=choice, scenario=None, **others)
            given = click.get_current_context().get_parameter_source
            if scale or given("seed") is ParameterSource.COMMANDLINE:
                near = difflib.get_close_matches(workload, WORKLOADS, 1)
                hint = f"did you mean {near[0]}?" if near else "a scenario sets scale and seed itself"
                raise click.BadParameter(
                    f"{workload!r} is not a workload ({', '.join(WORKLOADS)}): {hint}", param_hint="WORKLOAD"
                )
            from stallmark.scenarios.read import read_scenario

            chosen = read_scenario(workload)
            return command(choice=chosen.contents, scenario=chosen, **others)

        with_choice.__doc__ = (command.__doc__ or "").format(workloads=format.either(WORKLOADS))
        return with_choice

    return with_options


def unscaled_choice(workload: str, seed: int):
    from stallmark.scenarios.model import WorkloadChoice
    from stallmark.transactions import known_name

    return WorkloadChoice.model_construct(name=known_name(workload), scale={}, seed=seed)


def choice_of(workload: str, scale: str, seed: int):
    """Return a workload with the scale in `--scale`. Raise WrongOption if the workload cannot have this scale."""
    from pydantic import ValidationError

    from stallmark.loaders import loader_for
    from stallmark.scenarios.model import WorkloadChoice
    from stallmark.transactions import known_name

    measures: dict[str, Any] = {}
    for part in filter(None, scale.split(",")):
        measure, _, number = (word.strip() for word in part.partition("="))
        wrong = "is not a measure" if measure != "size" and not number.replace(".", "", 1).isdecimal() else ""
        if wrong := wrong or ("is given twice" if measure in measures else ""):
            example = loader_for(known_name(workload)).example
            raise click.BadParameter(f"{part!r} {wrong}: write --scale {example}", param_hint="--scale")
        measures[measure] = number if measure == "size" else float(number) if "." in number else int(number)
    try:
        return WorkloadChoice(name=workload, scale=measures, seed=seed)
    except ValidationError as error:
        raise WrongOption(mistake(error.errors()[0])) from None


runs_argument = click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
markdown_option = click.option(
    "--markdown", metavar="FILE", help="Also write a summary in Markdown; - for standard output."
)
junit_option = click.option(
    "--junit",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write a JUnit file for CI: each limit, and whether it was met.",
)
quiet_option = click.option("--quiet", "-q", is_flag=True, help="Show the result alone, without progress.")
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON to standard output.")


def out_option(help: str) -> Callable:
    """Add the folder of all experiments."""
    kind = click.Path(path_type=Path)
    return click.option("--out", "out_dir", type=kind, default=Path("stallmark-runs"), show_default=True, help=help)


def experiment_options(command: Callable) -> Callable:
    """Add the folder of an experiment, by default of the one begun last in `--out`."""
    out_dir = out_option("Folder to search for the latest experiment.")
    exists = click.Path(path_type=Path, exists=True)
    return click.argument("folder", metavar="[RUNS/…]", required=False, type=exists)(out_dir(command))


def page_option(name: str, *, help: str, default: str | None = None) -> Callable:
    """An option for the address of a page that this machine serves, as a PageAddress."""
    return click.option(
        name, metavar="[HOST:]PORT", callback=_as_address, default=default, show_default=True, help=help
    )


def _as_address(context: click.Context, option: click.Parameter, text: str | None):
    from stallmark.web_access import PageAddress

    try:
        return PageAddress.parse(text) if text else None
    except ValueError as error:
        raise click.BadParameter(as_reason(error), context, option) from None

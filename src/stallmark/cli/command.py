"""The classes of commands and groups, and commands whose module is imported when they are called."""

from importlib import import_module
from inspect import cleandoc
from typing import Any

import click
from click.core import ParameterSource

from stallmark import capabilities
from stallmark.stopping import later

OTHERS_NAMES = {
    **dict.fromkeys(("--clients", "--client", "--vus", "--concurrency", "--connections", "--threads"), "--users"),
    **dict.fromkeys(("--time", "--run-time", "--runtime", "--seconds"), "--duration"),
    **dict.fromkeys(("--tps", "--rps", "--arrival-rate"), "--rate"),
    **dict.fromkeys(("--host", "--url", "--dsn", "--connection", "--database"), "--server"),
    **dict.fromkeys(("--silent", "--no-progress"), "--quiet"),
    **dict.fromkeys(("--output", "--output-dir", "--out-dir"), "--out"),
    **dict.fromkeys(("--junit-xml", "--junitxml", "--xml"), "--junit"),
    **dict.fromkeys(("--summary-markdown", "--md"), "--markdown"),
    **dict.fromkeys(("--threshold", "--thresholds", "--fail-on"), "--fail-if"),
}
"""Option names of pgbench, k6, Locust, HammerDB, fio and pytest, each with our name for the same option."""

_PROCESSES = "leave it out, because Stallmark spreads the users over processes itself"
_TRANSACTIONS = "write --duration, because a run ends after a measured time, not after a number of transactions"
_ADVICE_OF_RUN = {
    ("-j", "--jobs", "--processes"): _PROCESSES,
    ("-t", "-i", "--transactions", "--iterations", "--events"): _TRANSACTIONS,
    ("-u",): "write --users",
    ("-o",): "write --out",
    ("-p", "-d", "-U", "--dbname", "--username", "--user", "--password"): "write --server "
    "postgresql://user@host:5432/database, with the password in PGPASSWORD",
    ("-b", "-S", "-N", "--builtin", "--select-only", "--skip-some-updates"): "write the script to a file, such as that "
    "of `pgbench --show-script=select-only`, and name it with -f",
    ("-M", "--protocol"): "leave it out, because statements are always prepared",
    ("-n", "-v", "--no-vacuum", "--vacuum-all"): "leave it out, because a run vacuums nothing",
    ("-C", "--connect"): "leave it out, because each user keeps its connection",
    ("-P", "--progress", "--report-interval"): "leave it out, because a run shows its progress, unless --quiet",
    ("-r", "--spawn-rate", "--ramp", "--ramp-up", "--rampup"): "write --set ramp=10s for the time in which users start",
    ("--warm-up", "--warmup", "--warmup-time"): "write --set warm_up=10s",
    ("-s", "--scale"): "write -D scale=100 for scripts, or --set for the data of a scenario",
    ("-e", "--env"): "write --set for keys of a scenario, or -D for variables of scripts",
    ("--stage", "--stages"): "write --set users=[10,20,40], with a step for each number",
    ("-L", "--latency-limit"): "write --set call_timeout=1s: a call that takes longer is cancelled, and an "
    "arrival that waits longer is missed",
    ("-l", "--log", "--csv", "--summary-export"): "leave it out: `stallmark export` writes the record's values",
    ("--headless",): "leave it out, because a run opens no page by itself",
}
WITHOUT_OURS = {"run": {name: advice for names, advice in _ADVICE_OF_RUN.items() for name in names}}
"""Option names of pgbench, k6, Locust and sysbench without a counterpart in a command, each with advice."""


class Command(click.Command):
    """A command whose options can be set in the environment, and only once on the command line: click would silently
    use the last. Nothing on the command line may be empty.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        prefix = environment_prefix(ctx)
        for option in self.params:
            if isinstance(option, click.Option) and option.envvar is None:
                option.envvar = prefix + max(option.opts, key=len).lstrip("-").replace("-", "_").upper()
        try:
            values, _, given = self.make_parser(ctx).parse_args(list(args))
        except click.NoSuchOption as error:
            if advice := self._advice(error.option_name):
                sentence = f"No such option {error.option_name!r}: {advice}."
                raise click.NoSuchOption(error.option_name, sentence, ctx=ctx) from None
            raise
        for param in given:
            value = values[str(param.name)]
            # A variable of a shell that is not set: it would name this folder, or the embedded server.
            if value == "" or (isinstance(value, list | tuple) and "" in value):
                name = param.opts[0] if isinstance(param, click.Option) else param.make_metavar(ctx)
                raise click.UsageError(f"{name} is empty: write a value, or leave it out.", ctx)
        for option in {
            duplicate for duplicate in given if isinstance(duplicate, click.Option) and given.count(duplicate) > 1
        }:
            if not (option.multiple or option.count):
                raise click.UsageError(f"{option.opts[0]} is given twice: leave one out.", ctx)
        return super().parse_args(ctx, args)

    def _advice(self, others_name: str) -> str | None:
        ours = OTHERS_NAMES.get(others_name)
        if ours and any(ours in option.opts for option in self.params):
            return f"write {ours}"
        return WITHOUT_OURS.get(self.name or "", {}).get(others_name)


def set_by_variables(*names: str) -> str:
    """Return " (the environment sets STALLMARK_…)" if variables set one of these parameters, else an empty text."""
    # Variables of a whole pipeline are easily forgotten, so a message that refuses an option names its variable.
    context = click.get_current_context()
    variables = [
        str(param.envvar)
        for param in context.command.params
        if param.name in names and context.get_parameter_source(param.name) is ParameterSource.ENVIRONMENT
    ]
    return f" (the environment sets {' and '.join(variables)})" if variables else ""


def environment_prefix(ctx: click.Context) -> str:
    """Return the prefix of a command's environment variables: STALLMARK_DB_BUILD_ for `stallmark db build`."""
    names: list[str] = []
    while ctx.parent:
        names.insert(0, ctx.command.name or "")
        ctx = ctx.parent
    return "_".join(["STALLMARK", *names, ""]).replace("-", "_").upper()


class Extensible(Command):
    """A command that capabilities add options to. Its callback gets the list `added`: what each capability returns for
    its own options, unless that is None."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._additions = capabilities.added_options(self.name or "")
        for addition in self._additions:
            self.params += addition.params
            self.help = "\n\n".join(cleandoc(help) for help in (self.help, addition.help) if help)

    def invoke(self, ctx: click.Context) -> Any:
        given = [{param.name: ctx.params.pop(param.name) for param in added.params} for added in self._additions]
        made = [
            ctx.invoke(addition.callback, **options) for addition, options in zip(self._additions, given, strict=True)
        ]
        ctx.params["added"] = [value for value in made if value is not None]
        return super().invoke(ctx)


class Group(click.Group):
    """A group of such commands."""

    command_class = Command


class Unloaded(click.Command):
    """The name and help line of a command whose module is not imported yet."""

    def __init__(self, name: str, module: str, help_line: str):
        super().__init__(name, short_help=help_line)
        self._module = module

    def load(self) -> click.Command:
        """Import the command: the attribute of its module that is a command of this name."""
        # A signal during an import may look like a missing package to the module that imports it.
        with later():
            module = import_module(self._module)
        return next(
            member for member in vars(module).values() if isinstance(member, click.Command) and member.name == self.name
        )


class LazyGroup(Group):
    """A group that imports a command when it is called; its help and its completion need no command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, Unloaded) else command, rest

"""The classes of commands and groups, and commands whose module is imported when they are called."""

from importlib import import_module

import click

from stallmark.stopping import later


class Command(click.Command):
    """A command that refuses an option given twice: the second would silently replace the first."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        _, _, given = self.make_parser(ctx).parse_args(list(args))
        for option in {one for one in given if isinstance(one, click.Option) and given.count(one) > 1}:
            if not (option.multiple or option.count):
                raise click.UsageError(f"{option.opts[0]} is given twice: leave one out.", ctx)
        return super().parse_args(ctx, args)


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
        with later():  # a package that is being imported may take an interruption for its own absence
            module = import_module(self._module)
        return next(one for one in vars(module).values() if isinstance(one, click.Command) and one.name == self.name)


class LazyGroup(Group):
    """A group that imports a command when it is called; its help and its completion need no command."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, Unloaded) else command, rest

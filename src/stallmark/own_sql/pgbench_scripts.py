"""pgbench's scripts: statements and backslash commands, parsed into the steps of a transaction."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal

from stallmark.errors import StallmarkError
from stallmark.own_sql.pgbench_expressions import Expression, compile_expression
from stallmark.own_sql.statements import Kind, Statement, split

_REFUSED = {
    "aset": "keep one result with \\gset",
    "shell": "Stallmark starts no command of a script",
    "setshell": "Stallmark starts no command of a script",
    "startpipeline": "Stallmark sends a statement at a time",
    "syncpipeline": "Stallmark sends a statement at a time",
    "endpipeline": "Stallmark sends a statement at a time",
}
_COMMAND = re.compile(r"\\(?P<name>[A-Za-z]+)[ \t]*(?P<rest>(?:\\\r?\n|[^\n])*)")
_SKIPPED = re.compile(
    r"""--[^\n]* | /\* | '(?:[^']|'')*'? | "(?:[^"]|"")*"? | \$(?P<tag>(?:[^\W\d]\w*)?)\$ | \\; | (?P<slash>\\)
      | (?P<end>;) | .""",
    re.VERBOSE | re.DOTALL,
)
_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}
_DEFAULTS = {"scale": 1}
AUTOMATIC = ("client_id", "default_seed", "random_seed", *_DEFAULTS)
"""The variables that every script has."""


@dataclass(frozen=True)
class Set:
    name: str
    value: Expression


@dataclass(frozen=True)
class Query:
    """A statement; with a `prefix` the columns of its one row become variables (`\\gset`)."""

    statement: Statement
    prefix: str | None = None


@dataclass(frozen=True)
class Sleep:
    duration: Expression
    unit_s: float


@dataclass(frozen=True)
class Jump:
    """A jump to a step by its place; with a condition, only if that does not hold."""

    to: int
    unless: Expression | None = None


Step = Set | Query | Sleep | Jump


def parse_script(text: str, defined: Mapping[str, Any] = MappingProxyType({})) -> list[Step]:
    """Return the steps of a script, in which `defined` variables have values already.

    Raise StallmarkError, a clause with its line, for what Stallmark does not have, and for a variable without a value.
    """
    # \gset may overwrite any variable, by names that only the result shows: then none is constant.
    parser = _Script(text, {} if "\\gset" in text else {**_DEFAULTS, **defined})
    steps = parser.parse()
    if not any(isinstance(step, Query) for step in steps):
        raise StallmarkError("it has no statement")
    _refuse_unset(steps, defined.keys())
    _refuse_open(steps)
    return steps


class _Script:
    def __init__(self, text: str, defined: Mapping[str, Any]):
        self._text = text
        # A variable that the script sets is not constant, whatever --define gave it first.
        changed = set(re.findall(r"\\set\s+(\w+)", text))
        self._constants = {name: value for name, value in defined.items() if name not in changed}
        self._steps: list[Step] = []
        self._open: list[_If] = []

    def parse(self) -> list[Step]:
        position = begin = 0
        while position < len(self._text):
            token = _SKIPPED.match(self._text, position)
            assert token
            if token["end"]:
                self._add(begin, position)
                position = begin = token.end()
            elif token[0] == "\\;":
                raise StallmarkError(
                    f"line {self._line(position)}: \\; joins statements, and is not supported: write ;"
                )
            elif token["slash"]:
                command = _COMMAND.match(self._text, position)
                if not command:
                    raise StallmarkError(f"line {self._line(position)}: a backslash begins no command there")
                self._command(command["name"], _joined(command["rest"]), begin, position)
                position = begin = command.end()
            else:
                position = self._end_of_token(token)
        self._add(begin, len(self._text))
        if self._open:
            raise StallmarkError(f"line {self._open[-1].line}: \\if has no \\endif")
        return self._steps

    def _end_of_token(self, token: re.Match) -> int:
        """Return the place behind a token: of a comment or a dollar quote, behind all of it."""
        if token[0] == "/*":
            return max(token.end(), self._text.find("*/", token.end()) + 2)
        if token["tag"] is not None:
            end = self._text.find(token[0], token.end())
            return end + len(token[0]) if end >= 0 else len(self._text)
        return token.end()

    def _add(self, begin: int, end: int, prefix: str | None = None) -> None:
        text = self._text[begin:end]
        for statement in split(text, "postgresql"):
            line = statement.line + self._text.count("\n", 0, begin)
            placed = replace(statement, line=line)
            if placed.kind in (Kind.DDL, Kind.REFUSED):
                raise StallmarkError(f"line {line}: {placed.word} is not part of a load: remove it")
            self._steps.append(Query(placed, prefix))
        if prefix is not None and not (self._steps and isinstance(self._steps[-1], Query) and text.strip()):
            raise StallmarkError(f"line {self._line(end)}: \\gset follows a statement")

    def _command(self, name: str, rest: str, begin: int, position: int) -> None:
        line, name = self._line(position), name.lower()
        try:
            if name == "gset":
                return self._add(begin, position, rest.strip())
            self._add(begin, position)
            if name in _REFUSED:
                raise StallmarkError(f"\\{name} is not supported: {_REFUSED[name]}")
            if name == "set":
                variable, _, expression = rest.strip().partition(" ")
                if not re.fullmatch(r"[^\W\d]\w*", variable):
                    raise StallmarkError(f"\\set names no variable ({variable!r})")
                self._steps.append(Set(variable, compile_expression(expression, self._constants)))
            elif name == "sleep":
                self._steps.append(_sleep(rest))
            elif name in ("if", "elif", "else", "endif"):
                self._branch(name, rest, line)
            else:
                raise StallmarkError(f"\\{name} is not a command of pgbench's scripts that Stallmark has")
        except StallmarkError as error:
            text = str(error)
            raise StallmarkError(text if text.startswith("line ") else f"line {line}: {text}") from None

    def _branch(self, name: str, rest: str, line: int) -> None:
        if name == "if":
            # The target of a jump is not known yet: −1 stands there until the branch has been parsed.
            self._open.append(_If(line, len(self._steps)))
            self._steps.append(Jump(-1, compile_expression(rest)))
            return
        if not self._open:
            raise StallmarkError(f"\\{name} has no \\if")
        current = self._open[-1]
        if name == "endif":
            self._open.pop()
            self._settle(current.test)
            for end in current.ends:
                self._steps[end] = Jump(len(self._steps))
            return
        if current.has_else:
            raise StallmarkError(f"\\{name} follows \\else")
        current.ends.append(len(self._steps))
        self._steps.append(Jump(-1))
        self._settle(current.test)
        current.test = None
        if name == "elif":
            current.test = len(self._steps)
            self._steps.append(Jump(-1, compile_expression(rest)))
        else:
            current.has_else = True

    def _settle(self, test: int | None) -> None:
        if test is not None:
            step = self._steps[test]
            assert isinstance(step, Jump)
            self._steps[test] = Jump(len(self._steps), step.unless)

    def _line(self, position: int) -> int:
        return self._text.count("\n", 0, position) + 1


class _If:
    """An \\if that has not ended: the place of the test whose branch is parsed, and of the jumps to its end."""

    def __init__(self, line: int, test: int):
        self.line = line
        self.test: int | None = test
        self.ends: list[int] = []
        self.has_else = False


def _joined(rest: str) -> str:
    """Return a command's arguments in one line: a backslash at a line's end continues it."""
    return re.sub(r"\\\r?\n", " ", rest).replace("\t", " ").strip()


def _sleep(rest: str) -> Sleep:
    duration = re.fullmatch(r"(:\w+|\d+)\s*(us|ms|s)?", rest.strip(), re.IGNORECASE)
    if not duration:
        raise StallmarkError(f"\\sleep takes a whole number or a variable, and us, ms or s, not {rest.strip()!r}")
    return Sleep(compile_expression(duration[1]), _UNITS[(duration[2] or "s").lower()])


def _refuse_unset(steps: list[Step], defined: Iterable[str]) -> None:
    known = {*defined, *AUTOMATIC}
    prefixes: list[str] = []
    for step in steps:
        names: frozenset[str] | tuple[str, ...] = ()
        where = ""
        match step:
            case Set(name, value):
                names, where = value.names, f"\\set {name}"
            case Query(statement, prefix):
                names, where = statement.names, f"line {statement.line}"
                prefixes += [] if prefix is None else [prefix]
            case Sleep(duration, _):
                names, where = duration.names, "\\sleep"
            case Jump(_, unless) if unless:
                names, where = unless.names, "\\if"
        for name in names:
            if name not in known and not any(name.startswith(prefix) for prefix in prefixes):
                raise StallmarkError(f"{where}: the variable {name} has no value: \\set it, or give it with --define")
        if isinstance(step, Set):
            known.add(step.name)


def _refuse_open(steps: list[Step]) -> None:
    """Refuse a script without branches that leaves a transaction open; one with branches is looked at as it runs."""
    if any(isinstance(step, Jump) for step in steps):
        return
    state: Literal["closed", "open"] = "closed"
    for step in steps:
        if isinstance(step, Query):
            state = "open" if step.statement.begins else "closed" if step.statement.ends else state
    if state == "open":
        raise StallmarkError("it leaves a transaction open: end it with COMMIT")

"""The expressions of `\\set`, `\\if` and `\\sleep`, compiled to Python functions of the variables and the draws."""

import random
import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from stallmark.errors import StallmarkError
from stallmark.own_sql import pgbench_functions
from stallmark.own_sql.pgbench_functions import ANY, DRAWS, FUNCTIONS, HASH, OPERATORS, Value, as_bool, as_value, call

Variables = MutableMapping[str, Any]
Evaluate = Callable[[Variables, random.Random], Value]

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<double>\d+\.\d*(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+|\.\d+(?:[eE][-+]?\d+)?)
    | (?P<integer>\d+)
    | :(?P<variable>\w+)
    | (?P<word>[^\W\d]\w*)
    | (?P<sign><<|>>|<=|>=|<>|!=|[-+*/%()<>=,|\#&~])
    | (?P<other>\S)
    )""",
    re.VERBOSE,
)
# From the weakest on; those of one line are of one strength.
_LEVELS = (("or",), ("and",), ("<", ">", "=", "<=", ">=", "<>", "!="), ("|", "#", "&", "<<", ">>"), ("+", "-"),
           ("*", "/", "%"))  # fmt: skip
_ADDITIVE = 4
_KEYWORDS = frozenset({"and", "or", "not", "is", "isnull", "notnull", "when", "then", "else", "end"})
_CONSTANTS: dict[str, Value] = {"null": None, "true": True, "false": False}


@dataclass(frozen=True)
class Expression:
    """A compiled expression; `names` are the variables that it needs, `constant` says that it is always the same."""

    evaluate: Evaluate
    names: frozenset[str] = frozenset()
    constant: bool = False

    def __call__(self, variables: Variables, rng: random.Random) -> Value:
        return self.evaluate(variables, rng)


def compile_expression(text: str, constants: Mapping[str, Any] = MappingProxyType({})) -> Expression:
    """Return the function of an expression, in which some variables are always the same. Raise StallmarkError, a
    clause, if pgbench would not take it."""
    parser = _Parser(_tokens(text), constants)
    expression = parser.level(0)
    if parser.tokens[parser.position :]:
        raise StallmarkError(f"{parser.tokens[parser.position][1]!r} is not expected there")
    return expression


def _tokens(text: str) -> list[tuple[str, str]]:
    tokens = []
    position = 0
    text = text.rstrip()
    while position < len(text):
        token = _TOKEN.match(text, position)
        assert token
        kind = token.lastgroup or "other"
        if kind == "other":
            raise StallmarkError(f"{token[kind]!r} is not part of an expression")
        tokens.append((kind, token[kind]))
        position = token.end()
    return tokens


@dataclass
class _Parser:
    tokens: Sequence[tuple[str, str]]
    constants: Mapping[str, Any]
    position: int = 0
    _depth: int = field(default=0)

    def level(self, strength: int) -> Expression:
        """Parse what binds as strongly as this, or more."""
        # NOT binds less than a comparison and more than AND, so it applies to the whole comparison behind it.
        if strength == 2 and self._takes("not"):
            return _applied(lambda value: not as_bool(value), [self.level(2)])
        if strength == len(_LEVELS):
            return self._unary()
        left = self.level(strength + 1)
        while True:
            if strength == 2 and (tested := self._test(left)):
                left = tested
            elif operator := self._operator(strength):
                left = _joined(operator, left, self.level(strength + 1))
            else:
                return left

    def _operator(self, strength: int) -> str | None:
        return next((sign for sign in _LEVELS[strength] if self._takes(sign)), None)

    def _test(self, left: Expression) -> Expression | None:
        """Parse IS [NOT] NULL, TRUE or FALSE behind an expression."""
        if self._takes("isnull"):
            return _tested(left, None)
        if self._takes("notnull"):
            return _negated(_tested(left, None))
        if not self._takes("is"):
            return None
        negated = self._takes("not")
        for word, value in _CONSTANTS.items():
            if self._takes(word):
                tested = _tested(left, value)
                return _negated(tested) if negated else tested
        raise StallmarkError("IS is followed by NULL, TRUE or FALSE")

    def _unary(self) -> Expression:
        self._depth += 1
        # Without a limit, deep nesting would end in Python's RecursionError and not in a sentence.
        if self._depth > 100:
            raise StallmarkError("it is nested more than 100 deep")
        try:
            if self._takes("+"):
                return self._unary()
            if self._takes("-"):
                # This number is out of range for a bigint, except with the minus before it.
                if self._next() == ("integer", str(2**63)):
                    self.position += 1
                    return _constant(pgbench_functions.LEAST)
                return _applied(OPERATORS["-"], [_constant(0), self._unary()])
            if self._takes("~"):
                return _applied(OPERATORS["#"], [_constant(-1), self.level(_ADDITIVE)])  # + and * bind first
            return self._primary()
        finally:
            self._depth -= 1

    def _primary(self) -> Expression:
        kind, text = self._next() or ("end", "the end")
        self.position += 1
        if kind == "integer":
            if int(text) > pgbench_functions.MOST:
                raise StallmarkError(f"{text} is out of range for a bigint")
            return _constant(int(text))
        if kind == "double":
            return _constant(float(text))
        if kind == "variable":
            return self._variable(text)
        if text == "(":
            inner = self.level(0)
            self._demand(")")
            return inner
        if kind == "word":
            return self._keyword_or_call(text.lower())
        raise StallmarkError(f"{text if kind == 'end' else repr(text)} is not expected there")

    def _variable(self, name: str) -> Expression:
        if name in self.constants:
            with suppress(pgbench_functions.ExpressionError):  # a text, which only a statement can take
                return _constant(as_value(self.constants[name]))
        return _variable(name)

    def _keyword_or_call(self, name: str) -> Expression:
        if name in _CONSTANTS:
            return _constant(_CONSTANTS[name])
        if name == "case":
            return self._case()
        if name in _KEYWORDS:
            raise StallmarkError(f"{name!r} is not expected there")
        if name not in FUNCTIONS and name not in DRAWS:
            raise StallmarkError(f"{name}() is not a function of pgbench that Stallmark has")
        self._demand("(")
        arguments: list[Expression] = []
        if not self._takes(")"):
            arguments.append(self.level(0))
            while self._takes(","):
                arguments.append(self.level(0))
            self._demand(")")
        return _call(name, arguments)

    def _case(self) -> Expression:
        branches = []
        while self._takes("when"):
            condition = self.level(0)
            self._demand("then")
            branches.append((condition, self.level(0)))
        if not branches:
            raise StallmarkError("CASE has no WHEN")
        otherwise = self.level(0) if self._takes("else") else _constant(None)
        self._demand("end")

        def evaluate(variables: Variables, rng: random.Random) -> Value:
            for condition, result in branches:
                if pgbench_functions.is_true(condition(variables, rng)):
                    return result(variables, rng)
            return otherwise(variables, rng)

        parts = [otherwise, *(part for branch in branches for part in branch)]
        return Expression(evaluate, frozenset().union(*(part.names for part in parts)))

    def _next(self) -> tuple[str, str] | None:
        return self.tokens[self.position] if self.position < len(self.tokens) else None

    def _takes(self, text: str) -> bool:
        token = self._next()
        if token and token[0] in ("word", "sign") and token[1].lower() == text:
            self.position += 1
            return True
        return False

    def _demand(self, text: str) -> None:
        if not self._takes(text):
            token = self._next()
            raise StallmarkError(f"{text!r} is missing before {repr(token[1]) if token else 'the end'}")


def _constant(value: Value) -> Expression:
    return Expression(lambda variables, rng: value, constant=True)


def _variable(name: str) -> Expression:
    return Expression(lambda variables, rng: as_value(variables[name]), frozenset({name}))


def _applied(function: Callable[..., Value], arguments: Sequence[Expression]) -> Expression:
    """Return a function of these arguments; of constants alone it is one."""
    names = frozenset().union(*(argument.names for argument in arguments))

    def evaluate(variables: Variables, rng: random.Random) -> Value:
        return call(function, [argument.evaluate(variables, rng) for argument in arguments])

    if all(argument.constant for argument in arguments):
        try:
            return _constant(evaluate({}, random.Random()))
        except pgbench_functions.ExpressionError:
            pass  # the error is raised at run time, as in pgbench, and only if the expression is reached
    return Expression(evaluate, names)


def _tested(left: Expression, value: Value) -> Expression:
    return Expression(lambda variables, rng: pgbench_functions.equal_types(left(variables, rng), value), left.names)


def _negated(tested: Expression) -> Expression:
    return Expression(lambda variables, rng: not tested(variables, rng), tested.names)


def _joined(operator: str, left: Expression, right: Expression) -> Expression:
    if operator in OPERATORS:
        return _applied(OPERATORS[operator], [left, right])
    settles = operator == "or"

    def evaluate(variables: Variables, rng: random.Random) -> Value:
        """Evaluate the second only if the first does not settle it."""
        # As in pgbench, NULL AND FALSE is NULL; in SQL it is false.
        if (first := left(variables, rng)) is None:
            return None
        if as_bool(first) is settles:
            return settles
        second = right(variables, rng)
        return None if second is None else as_bool(second)

    return Expression(evaluate, left.names | right.names)


def _call(name: str, arguments: list[Expression]) -> Expression:
    count, function = FUNCTIONS.get(name) or DRAWS[name]
    if count == HASH and len(arguments) == 1:
        arguments = [*arguments, _variable("default_seed")]
    wanted = {ANY: max(1, len(arguments)), HASH: 2}.get(count, count)
    if len(arguments) != wanted:
        raise StallmarkError(f"{name}() has {len(arguments)} arguments, and takes {wanted}")
    if name not in DRAWS:
        return _applied(function, arguments)
    names = frozenset().union(*(argument.names for argument in arguments))
    if name == "random" and all(argument.constant for argument in arguments):
        low, high = (argument({}, random.Random()) for argument in arguments)
        if isinstance(low, int) and isinstance(high, int) and low <= high < low + 2**48:
            span = high - low + 1
            return Expression(lambda variables, rng: low + int(rng.random() * span))  # the usual case, fast

    def draw(variables: Variables, rng: random.Random) -> Value:
        values = [argument.evaluate(variables, rng) for argument in arguments]
        return None if None in values else function(rng, *values)

    return Expression(draw, names)

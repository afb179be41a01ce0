"""pgbench's functions as they are: values of the same type and size, and draws of the same distributions."""

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

Value = int | float | bool | str | None

LEAST, MOST = -(2**63), 2**63 - 1
_MASK = 2**64 - 1


class ExpressionError(Exception):
    """An expression has no value, as pgbench says it: division by zero, say."""


def as_value(given: Any) -> Value:
    """Return a variable's value: of a text, the number or truth that it is written as."""
    if not isinstance(given, str):
        return given if isinstance(given, (int, float, bool, type(None))) else as_value(str(given))
    text, lower = given.strip(), given.strip().lower()
    if lower == "null":
        return None
    if lower and ("true".startswith(lower) or "yes".startswith(lower) or lower == "on"):
        return True
    # `o` alone could be `on` as well as `off`, so a beginning of these needs two letters.
    if lower and ("false".startswith(lower) or "no".startswith(lower) or lower in ("off", "of")):
        return False
    try:
        return as_int(int(text)) if text.lstrip("+-").isdigit() else float(text)
    except ValueError:
        raise ExpressionError(f"{given!r} is not a number") from None


def as_int(value: Value) -> int:
    """Return a number as a whole one of 64 bits."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        raise ExpressionError(f"{_type(value)} cannot be a whole number")
    if isinstance(value, float):
        if math.isnan(value) or math.isinf(value):
            raise ExpressionError("double to int overflow")
        value = round(value)  # to the nearest even one, as rint does
    if not LEAST <= value <= MOST:
        raise ExpressionError("bigint out of range")
    return value


def as_double(value: Value) -> float:
    if isinstance(value, bool) or value is None or isinstance(value, str):
        raise ExpressionError(f"{_type(value)} cannot be a double")
    return float(value)


def as_bool(value: Value) -> bool:
    if not isinstance(value, bool):
        raise ExpressionError(f"{_type(value)} cannot be a boolean")
    return value


def is_true(value: Value) -> bool:
    """Return whether a condition holds: NULL and 0 do not."""
    return bool(value)


def as_parameter(value: Value) -> Value:
    """Return a variable as it is bound: a double with 15 digits, as pgbench writes it."""
    if type(value) is int:  # the usual case, fast
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:.15g}" if isinstance(value, float) else value


def _type(value: Value) -> str:
    return "null" if value is None else "boolean" if isinstance(value, bool) else "text"


# Operators: of two whole numbers a whole one, of a double and another a double.


def _arithmetic(of_ints: Callable[[int, int], int], of_doubles: Callable[[float, float], float]) -> Callable:
    def operate(left: Value, right: Value) -> Value:
        if isinstance(left, float) or isinstance(right, float):
            return of_doubles(as_double(left), as_double(right))
        return as_int(of_ints(as_int(left), as_int(right)))

    return operate


def _comparison(compare: Callable[[Any, Any], bool]) -> Callable:
    def operate(left: Value, right: Value) -> bool:
        if isinstance(left, float) or isinstance(right, float):
            return compare(as_double(left), as_double(right))
        return compare(as_int(left), as_int(right))

    return operate


def _divide(left: int, right: int) -> int:
    if right == 0:
        raise ExpressionError("division by zero")
    quotient = abs(left) // abs(right)  # towards zero, as C does
    return quotient if (left < 0) == (right < 0) else -quotient


def _divide_doubles(left: float, right: float) -> float:
    if right:
        return left / right
    return math.nan if not left or math.isnan(left) else math.copysign(math.inf, left) * math.copysign(1, right)


def _remainder(left: Value, right: Value) -> int:
    dividend, divisor = as_int(left), as_int(right)
    return dividend - divisor * _divide(dividend, divisor)


def _bits(operate: Callable[[int, int], int]) -> Callable[[Value, Value], int]:
    return lambda left, right: _signed(operate(as_int(left), as_int(right)))


def _signed(value: int) -> int:
    value &= _MASK
    return value - 2**64 if value > MOST else value


def equal_types(left: Value, right: Value) -> bool:
    """Return True if `left IS right`."""
    return type(left) is type(right) and left == right


def _extreme(choose: Callable[..., Any]) -> Callable[..., Value]:
    def operate(*values: Value) -> Value:
        of_doubles = any(isinstance(value, float) for value in values)
        return choose(map(as_double if of_doubles else as_int, values))

    return operate


def _absolute(value: Value) -> Value:
    return abs(value) if isinstance(value, float) else as_int(abs(as_int(value)))


def _apply_to_double(function: Callable[[float], float]) -> Callable[[Value], float]:
    def operate(value: Value) -> float:
        try:
            return function(as_double(value))
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return operate


def _logarithm(value: float) -> float:
    return -math.inf if value == 0 else math.log(value)


def _power(base: Value, exponent: Value) -> float:
    try:
        return math.pow(as_double(base), as_double(exponent))
    except ValueError:
        return math.nan
    except OverflowError:
        return math.inf


# Hashes and permutations: the very numbers of pgbench.

_FNV_PRIME, _FNV_BASIS = 0x100000001B3, 0xCBF29CE484222325
_MURMUR, _MURMUR_8, _MURMUR_ROT = 0xC6A4A7935BD1E995, 0x35253C9ADE8F4CA8, 47


def hash_fnv1a(value: Value, seed: Value) -> int:
    number, result = as_int(value), _FNV_BASIS ^ (as_int(seed) & _MASK)
    for _ in range(8):
        result = (result ^ (number & 0xFF)) * _FNV_PRIME & _MASK
        number >>= 8
    return _signed(result)


def hash_murmur2(value: Value, seed: Value) -> int:
    result, key = (as_int(seed) & _MASK) ^ _MURMUR_8, as_int(value) & _MASK
    key = key * _MURMUR & _MASK
    key ^= key >> _MURMUR_ROT
    key = key * _MURMUR & _MASK
    result = (result ^ key) * _MURMUR & _MASK
    result ^= result >> _MURMUR_ROT
    result = result * _MURMUR & _MASK
    return _signed(result ^ result >> _MURMUR_ROT)


class _Xoroshiro:
    """xoroshiro128**, seeded by splitmix64, as PostgreSQL has it since 15."""

    def __init__(self, seed: int):
        self._seed = seed & _MASK
        self._state = [self._split(), self._split()]

    def _split(self) -> int:
        self._seed = (self._seed + 0x9E3779B97F4A7C15) & _MASK
        value = self._seed
        value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & _MASK
        value = (value ^ value >> 27) * 0x94D049BB133111EB & _MASK
        return value ^ value >> 31

    def next(self) -> int:
        first, second = self._state
        mixed = second ^ first
        value = _rotated(first * 5 & _MASK, 7) * 9 & _MASK
        self._state = [(_rotated(first, 24) ^ mixed ^ (mixed << 16)) & _MASK, _rotated(mixed, 37)]
        return value

    def up_to(self, most: int) -> int:
        if not most:
            return 0
        shift = 64 - most.bit_length()
        # Drawn again rather than reduced by a remainder, as PostgreSQL does: only so the numbers are pgbench's.
        while (value := self.next() >> shift) > most:
            pass
        return value


def _rotated(value: int, bits: int) -> int:
    return (value << bits | value >> (64 - bits)) & _MASK


def permute(value: Value, count: Value, seed: Value) -> int:
    """Return the place of a number of 0 … `count` - 1 in a permutation that the seed decides."""
    size = as_int(count)
    if size <= 0:
        raise ExpressionError("permute size parameter must be greater than zero")
    if size < 2:
        return 0
    draws = _Xoroshiro(as_int(seed))
    place = (as_int(value) & _MASK) % size
    length = size.bit_length() - 1
    mask = (1 << length) - 1

    def mixed(number: int, factor: int, other: int) -> int:
        number = (number * factor ^ other) & mask
        return (number << 1 & mask) | (number >> (length - 1))

    for _ in range(6):
        factor, other = draws.next() & mask | 1, draws.next() & mask
        if place <= mask:
            place = mixed(place, factor, other)
        factor, other = draws.next() & mask | 1, draws.next() & mask
        if (mirrored := size - 1 - place) <= mask:
            place = size - 1 - mixed(mirrored, factor, other)
        place = (place + draws.up_to(size - 1)) % size
    return place


# Draws. `rng.random()` has 53 bits, as pgbench's double has.


def draw_uniform(rng: random.Random, low: int, high: int) -> int:
    span = high - low + 1
    # Beyond that, 53 bits are too few to make all numbers equally likely.
    return low + (int(rng.random() * span) if span < 2**48 else rng.randrange(span))


def draw_exponential(rng: random.Random, low: int, high: int, parameter: float) -> int:
    cut = math.exp(-parameter)
    uniform = 1.0 - rng.random()
    return low + int((high - low + 1) * (-math.log(cut + (1.0 - cut) * uniform) / parameter))


def draw_gaussian(rng: random.Random, low: int, high: int, parameter: float) -> int:
    while not -parameter <= (deviation := rng.gauss(0.0, 1.0)) < parameter:
        pass
    return low + int((high - low + 1) * ((deviation + parameter) / (parameter * 2.0)))


def draw_zipfian(rng: random.Random, low: int, high: int, exponent: float) -> int:
    """Draw by rejection (Devroye, 1986, p. 550), for an exponent above 1."""
    count = high - low + 1
    if count <= 1:
        return low
    base, draw = 2.0 ** (exponent - 1.0), rng.random
    while True:
        first, second = draw(), draw()
        try:
            rank = math.floor(first ** (-1.0 / (exponent - 1.0)))
        except (OverflowError, ZeroDivisionError):
            continue
        times = (1.0 + 1.0 / rank) ** (exponent - 1.0)
        if second * rank * (times - 1.0) / (base - 1.0) <= times / base and rank <= count:
            return low - 1 + rank


def _checked(name: str, low: Value, high: Value) -> tuple[int, int]:
    least, most = as_int(low), as_int(high)
    if least > most:
        raise ExpressionError(f"empty range given to {name}")
    if most - least >= MOST:
        raise ExpressionError("random range is too large")
    return least, most


def random_uniform(rng: random.Random, low: Value, high: Value) -> int:
    return draw_uniform(rng, *_checked("random", low, high))


def random_exponential(rng: random.Random, low: Value, high: Value, parameter: Value) -> int:
    if (wanted := as_double(parameter)) <= 0:
        raise ExpressionError(f"exponential parameter must be greater than zero (not {wanted:f})")
    return draw_exponential(rng, *_checked("random_exponential", low, high), wanted)


def random_gaussian(rng: random.Random, low: Value, high: Value, parameter: Value) -> int:
    if (wanted := as_double(parameter)) < 2:
        raise ExpressionError(f"gaussian parameter must be at least 2.000000 (not {wanted:f})")
    return draw_gaussian(rng, *_checked("random_gaussian", low, high), wanted)


def random_zipfian(rng: random.Random, low: Value, high: Value, exponent: Value) -> int:
    if not 1.001 <= (wanted := as_double(exponent)) <= 1000:
        raise ExpressionError(f"zipfian parameter must be in range [1.001, 1000] (not {wanted:f})")
    return draw_zipfian(rng, *_checked("random_zipfian", low, high), wanted)


Function = Callable[..., Value]
ANY, HASH = range(-2, 0)
"""In place of a number of arguments: one or more, and one with a seed that may be left out."""

DRAWS: dict[str, tuple[int, Function]] = {
    "random": (2, random_uniform),
    "random_exponential": (3, random_exponential),
    "random_gaussian": (3, random_gaussian),
    "random_zipfian": (3, random_zipfian),
}
FUNCTIONS: dict[str, tuple[int, Function]] = {
    "abs": (1, _absolute),
    "double": (1, as_double),
    "exp": (1, _apply_to_double(math.exp)),
    "greatest": (ANY, _extreme(max)),
    "hash": (HASH, hash_murmur2),
    "hash_fnv1a": (HASH, hash_fnv1a),
    "hash_murmur2": (HASH, hash_murmur2),
    "int": (1, as_int),
    "least": (ANY, _extreme(min)),
    "ln": (1, _apply_to_double(_logarithm)),
    "mod": (2, _remainder),
    "permute": (3, permute),
    "pi": (0, lambda: math.pi),
    "pow": (2, _power),
    "power": (2, _power),
    "sqrt": (1, _apply_to_double(math.sqrt)),
}
OPERATORS: dict[str, Function] = {
    "+": _arithmetic(lambda a, b: a + b, lambda a, b: a + b),
    "-": _arithmetic(lambda a, b: a - b, lambda a, b: a - b),
    "*": _arithmetic(lambda a, b: a * b, lambda a, b: a * b),
    "/": _arithmetic(_divide, _divide_doubles),
    "%": _remainder,
    "=": _comparison(lambda a, b: a == b),
    "<>": _comparison(lambda a, b: a != b),
    "!=": _comparison(lambda a, b: a != b),
    "<": _comparison(lambda a, b: a < b),
    "<=": _comparison(lambda a, b: a <= b),
    ">": _comparison(lambda a, b: a > b),
    ">=": _comparison(lambda a, b: a >= b),
    "&": _bits(lambda a, b: a & b),
    "|": _bits(lambda a, b: a | b),
    "#": _bits(lambda a, b: a ^ b),
    "<<": _bits(lambda a, b: a << (b & 63)),
    ">>": _bits(lambda a, b: a >> (b & 63)),
}


def call(function: Function, arguments: Sequence[Value]) -> Value:
    """Return a function's value; NULL if an argument is."""
    return None if None in arguments else function(*arguments)

"""Read scenario files: shipped by name, others by path, all within limits. Errors name the line and the fix."""

import difflib
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError, RoundTripConstructor, SafeConstructor
from ruamel.yaml.error import MarkedYAMLError, ReusedAnchorWarning, YAMLError
from ruamel.yaml.events import AliasEvent, CollectionEndEvent, CollectionStartEvent, NodeEvent, ScalarEvent
from ruamel.yaml.parser import RoundTripParser
from ruamel.yaml.scanner import RoundTripScanner

from stallmark import capabilities
from stallmark.errors import StallmarkError, WrongOption, as_sentence, mistake
from stallmark.quantities import write_duration
from stallmark.scenarios import Titled
from stallmark.scenarios.database import BESIDE
from stallmark.scenarios.model import SHIPPED, AnyScenario, model_for
from stallmark.scenarios.validation_errors import Keys, sentences, shortened

# YAML that a user wrote, read within limits: a small text can nest, refer to itself and repeat without end.

LONGEST = 256 * 1024
"""Characters of a file, fifty times the longest scenario shipped."""
DEEPEST = 20
MOST_VALUES = 5_000
"""Values of a file, those that are there twice by a reference included."""
LONGEST_NUMBER = 40

_TOO_DEEP = f"it is nested more than {DEEPEST} deep, and a scenario is five deep"
_TOO_LONG = f"a number of {{:,}} digits: write one of at most {LONGEST_NUMBER}"
_NUMBER = re.compile(r"[-+]?[0-9][0-9a-fA-FoxX_.:+-]*")


class NotYaml(Exception):
    """An error: the text is not YAML, or exceeds the limits of a scenario. The message ends a sentence; `line` counts
    from 1.
    """

    def __init__(self, reason: str, line: int | None = None):
        super().__init__(reason)
        self.line = line


def load(text: str, *, with_lines: bool = False) -> Any:
    """Return the data of the text; `with_lines` keeps the line of each key in mappings and lists. Raise NotYaml."""
    if len(text) > LONGEST:
        raise NotYaml(f"it has more than {LONGEST:,} characters, and a scenario has a few thousand")
    yaml = YAML() if with_lines else YAML(typ="safe", pure=True)
    yaml.Scanner, yaml.Parser = _LimitedScanner, _LimitedParser
    if with_lines:
        yaml.Constructor = _PlainConstructor
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReusedAnchorWarning)  # refused
            return yaml.load(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise NotYaml(_syntax_error(error), line) from None
    except YAMLError:
        raise NotYaml("this is not YAML (it holds characters that no text has)") from None
    except (ValueError, OverflowError) as error:  # 2026-02-30 looks like a date
        raise NotYaml(
            f"it holds what looks like a date or a number but is not valid ({error}): put it in quotes"
        ) from None


def _syntax_error(error: MarkedYAMLError) -> str:
    if isinstance(error, _Beyond):
        return str(error.problem)
    if isinstance(error, DuplicateKeyError):
        key = str(error.problem).split('"')[1]
        return f"the key {key} is there twice: keep one"
    return f"this is not YAML ({error.problem})"


class _Beyond(MarkedYAMLError):
    """The text is YAML that no scenario needs."""


class _LimitedScanner(RoundTripScanner):
    """A scanner that refuses brackets within brackets without end, over which it would take hours."""

    def fetch_flow_collection_start(self, *arguments: Any, **options: Any) -> None:
        if self.flow_level >= DEEPEST:
            raise _Beyond(problem=_TOO_DEEP, problem_mark=self.reader.get_mark())
        super().fetch_flow_collection_start(*arguments, **options)


class _LimitedParser(RoundTripParser):
    """A parser that refuses a document of endless size before it builds anything."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._values = 0
        self._open: list[tuple[str | None, int]] = []  # collections that have begun, by anchor, after so many values
        self._within: dict[str, int] = {}  # the values within each anchor

    def get_event(self) -> Any:
        event = super().get_event()
        if reason := self._refusal(event):
            raise _Beyond(problem=reason, problem_mark=event.start_mark)
        return event

    def _refusal(self, event: Any) -> str | None:
        """Return the reason why a scenario cannot hold such a value, or None if it can."""
        if isinstance(event, CollectionEndEvent):
            anchor, before = self._open.pop()
            if anchor:
                self._within[anchor] = self._values - before
        if not isinstance(event, NodeEvent):
            return None
        self._values += 1
        anchor = event.anchor
        if isinstance(event, AliasEvent):
            if anchor in [opened for opened, _ in self._open]:
                return f"*{anchor} refers to what it is a part of: write it out"
            self._values += self._within.get(anchor, 0)
        elif isinstance(event, CollectionStartEvent | ScalarEvent) and event.ctag:
            return f"{event.tag} is a tag, and a scenario has none: leave it out"
        elif anchor in self._within:
            return f"&{anchor} is there twice: give each its own name"
        elif anchor:
            self._within[anchor] = 0
        if self._values > MOST_VALUES:
            return f"it has more than {MOST_VALUES:,} values, and a scenario has a few hundred"
        if isinstance(event, CollectionStartEvent):
            self._open.append((anchor, self._values))
            return _TOO_DEEP if len(self._open) > DEEPEST else None
        if isinstance(event, ScalarEvent) and not event.style and len(event.value) > LONGEST_NUMBER:
            return _TOO_LONG.format(len(event.value)) if _NUMBER.fullmatch(event.value) else None
        return None


class _PlainConstructor(RoundTripConstructor):
    """A constructor that keeps a word with an anchor, `&all true`, as the truth that it is: not as a number."""


_PlainConstructor.add_constructor("tag:yaml.org,2002:bool", SafeConstructor.construct_yaml_bool)


def shipped() -> list[str]:
    """Return the names of the scenarios that come with the product."""
    return sorted(_shipped_files())


def _shipped_files() -> dict[str, Path]:
    """Return the scenarios that come with the product and its capabilities, by name."""
    return {path.stem: path for folder in (SHIPPED, *capabilities.folders()) for path in folder.glob("*.yaml")}


def read_scenario(name_or_path: str, overrides: Sequence[str] = ()) -> AnyScenario:
    """Read a scenario with a database; see `read_any_scenario`."""
    scenario = read_any_scenario(name_or_path, overrides)
    if not isinstance(scenario, AnyScenario):
        raise StallmarkError(f"{scenario.name} has no database: `stallmark run {scenario.name}` runs it.")
    return scenario


@dataclass(frozen=True)
class LoadOptions:
    """The options of `stallmark run` that pgbench, k6 and Locust have too; None leaves what the scenario says."""

    users: int | None = None
    duration_s: float | None = None
    rate: float | None = None

    def apply(self, document: dict, changed: Iterable[Keys] = ()) -> dict[Keys, str]:
        """Change a scenario's document, in which keys were `changed` before; return each key with its option.

        Raise StallmarkError, a sentence, if the scenario has no such number, or several.
        """
        options = {
            ("users",): ("--users", self.users),
            ("measure",): ("--duration", self.duration_s and write_duration(self.duration_s)),
            ("arrivals",): ("--rate", self.rate and f"{self.rate:g}"),
        }
        kind = given.get("kind", "poisson") if isinstance(given := document.get("arrivals"), dict) else "poisson"
        origins: dict[Keys, str] = {}
        for keys, (option, value) in options.items():
            if value is None:
                continue
            if {keys, (*keys, "rate")}.intersection(changed):
                raise WrongOption(f"{option} and --set {keys[0]} are one thing: leave one of them out.")
            _refuse_option(document, option, value)
            origins[keys] = f"{option} {value}"
            document[keys[0]] = value
        if self.rate is not None:
            document |= {"arrivals": {"kind": kind, "rate": self.rate}, "think_time": None}
        return origins


def _refuse_option(document: Mapping[str, Any], option: str, value: Any) -> None:
    name = document.get("name")
    change = {"--users": f"users={value}", "--rate": f"arrivals={{kind: poisson, rate: {value}}}"}.get(option)
    if "queries" in document or not ("loads" in document or "workload" in document):
        raise WrongOption(f"{option} is of users who execute transactions, and {name} has none: leave it out.")
    if change and isinstance(loads := document.get("loads"), dict):
        of_users = [
            load for load, given in loads.items() if isinstance(given, dict) and not {"raw", "streams"} & {*given}
        ]
        raise WrongOption(
            f"{option} is of one load, and {name} has {', '.join(map(str, loads))}: name the load, as in "
            f"--set 'loads.{next(iter(of_users), '…')}.{change}'."
        )
    if option == "--users" and isinstance(users := document.get("users"), list) and len(users) > 1:
        raise WrongOption(
            f"{name} varies its users ({', '.join(map(str, users))}), and --users is one number: write --set "
            f"users={value} if that is meant."
        )


def read_any_scenario(name_or_path: str, overrides: Sequence[str] = (), options: LoadOptions = LoadOptions()) -> Titled:
    """Read a scenario shipped under that name, or from that file. Raises StallmarkError.

    `overrides` are `key=value` with dots between keys, the value in YAML, as in `workload.scale.branches=10`.
    """
    path = locate(name_or_path)
    return _read(_load(path), overrides, options, path)


def read_document(
    document: Mapping[str, Any], overrides: Sequence[str] = (), options: LoadOptions = LoadOptions()
) -> AnyScenario:
    """Read a scenario that is not in a file, with changes as in `read_any_scenario`. Raises StallmarkError."""
    return _read(dict(document), overrides, options, None)  # type: ignore[return-value]


def _read(written: dict, overrides: Sequence[str], options: LoadOptions, path: Path | None) -> Titled:
    # `stallmark list` reads all scenarios, and a copy is a tenth of that.
    given = deepcopy(written) if overrides or options != LoadOptions() else written
    origins = {_override(given, override): f"--set {shortened(override)}" for override in overrides}
    origins |= options.apply(given, origins)
    beside = path.parent if path else Path()
    try:
        return _validated(given, beside)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        # Of a scenario that is right without them, the options are the origin of mistakes in no key of theirs, too.
        if origins:
            with suppress(ValidationError, StallmarkError):
                _validated(written, beside)
                origins[()] = ", ".join(dict.fromkeys(origins.values()))
        # A sentence of ours, as on a folder of SQL, needs no place in a document that no user has written.
        if not path and problem["type"] == "value_error" and not {problem["loc"][:1], ()} & origins.keys():
            raise StallmarkError(as_sentence(mistake(problem))) from None
        mistakes = sentences(error, given, path or Path("the scenario"), origins)
        raise _refusal(mistakes if path else mistakes[:1], origins) from None


def _validated(document: Mapping[str, Any], beside: Path) -> Titled:
    return model_for(document).model_validate(document, context={BESIDE: beside})


def _refusal(mistakes: Sequence[str], origins: Mapping[Keys, str]) -> StallmarkError:
    """Return the error of mistakes in a scenario, some of whose keys came from options: `origins`."""
    in_options = all(mistake.startswith(tuple(origins.values())) for mistake in mistakes)
    return (WrongOption if in_options else StallmarkError)("\n".join(mistakes))


def locate(name_or_path: str) -> Path:
    """Return the file of a scenario shipped under that name, or that path; raise StallmarkError if neither exists."""
    if path := _shipped_files().get(name_or_path):
        return path
    path = Path(name_or_path)
    with suppress(OSError):  # a name that is longer than a file's can be
        if path.is_file():
            return path
    near = difflib.get_close_matches(name_or_path, shipped(), 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(shipped())}."
    raise StallmarkError(f"{shortened(name_or_path)!r} is neither a file nor a scenario of Stallmark: {hint}")


def _load(path: Path) -> dict:
    try:
        with path.open(encoding="utf-8") as file:
            document = load(file.read(LONGEST + 1), with_lines=True)
    except OSError as error:
        raise StallmarkError(f"{path} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise StallmarkError(f"{path} is not a text file.") from None
    except NotYaml as error:
        line = f", line {error.line}" if error.line else ""
        raise StallmarkError(f"{path}{line}: {error}.") from None
    if not isinstance(document, dict):
        raise StallmarkError(f"{path} holds no scenario: it must be a mapping that begins with `name:`.")
    return document


def _override(document: dict, override: str) -> Keys:
    """Put one value into the document; returns the keys that lead to it."""
    text, equals, value = override.partition("=")
    if not equals or not text:
        raise WrongOption(f"--set {override}: write it as key=value, for example --set measure=60s.")
    try:
        wanted = load(value)
    except NotYaml as error:
        raise WrongOption(f"--set {shortened(override)}: {error}.") from None
    place: Any = document
    keys: list[str | int] = []
    *parents, last = text.split(".")
    if len(parents) >= DEEPEST:
        raise WrongOption(f"--set {shortened(override)}: it names more than {DEEPEST} keys within each other.")
    for part in parents:
        keys.append(_key(place, part, override))
        if isinstance(place, dict):
            place.setdefault(part, {})
        place = place[keys[-1]]
    keys.append(_key(place, last, override))
    place[keys[-1]] = wanted
    return tuple(keys)


def _key(place: Any, part: str, override: str) -> str | int:
    """Return the key or list position that `part` of a dotted key means here."""
    if isinstance(place, dict):
        return part
    if not isinstance(place, list):
        raise WrongOption(f"--set {override}: there is nothing inside a single value to set {part} in.")
    if not part.isdigit() or int(part) >= len(place):
        raise WrongOption(
            f"--set {override}: {part} is not an item of this list: write a number from 0 to {len(place) - 1}."
        )
    return int(part)

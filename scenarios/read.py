"""Read scenario files: shipped by name, others by path. Errors name the line and the fix."""

import difflib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stallmark.errors import StallmarkError
from stallmark.scenarios.model import SHIPPED, AnyScenario, ProbeScenario, model_for
from stallmark.scenarios.validation_errors import Keys, sentences, shortened
from stallmark.scenarios.yaml_text import DEEPEST, LONGEST, NotYaml, load


def shipped() -> list[str]:
    """Return the names of the scenarios that come with the product."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def read_scenario(name_or_path: str, overrides: Sequence[str] = ()) -> AnyScenario:
    """Read a scenario with a database; see `read_any_scenario`."""
    scenario = read_any_scenario(name_or_path, overrides)
    if isinstance(scenario, ProbeScenario):
        raise StallmarkError(
            f"{scenario.name} probes storage and has no database: `stallmark run {scenario.name}` runs it."
        )
    return scenario


def read_any_scenario(name_or_path: str, overrides: Sequence[str] = ()) -> AnyScenario | ProbeScenario:
    """Read a scenario shipped under that name, or from that file. Raises StallmarkError.

    `overrides` are `key=value` with dots between keys, the value in YAML, as in `workload.scale.branches=10`.
    """
    path = locate(name_or_path)
    document = _load(path)
    origins = {_override(document, override): override for override in overrides}
    try:
        return model_for(document).model_validate(document)
    except ValidationError as error:
        raise StallmarkError("\n".join(sentences(error, document, path, origins))) from None


def locate(name_or_path: str) -> Path:
    """Return the file of a scenario shipped under that name, or that path; raise StallmarkError where there is none."""
    if name_or_path in shipped():
        return SHIPPED / f"{name_or_path}.yaml"
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
        raise StallmarkError(f"--set {override}: write it as key=value, for example --set measure=60s.")
    try:
        wanted = load(value)
    except NotYaml as error:
        raise StallmarkError(f"--set {shortened(override)}: {error}.") from None
    place: Any = document
    keys: list[str | int] = []
    *parents, last = text.split(".")
    if len(parents) >= DEEPEST:
        raise StallmarkError(f"--set {shortened(override)}: it names more than {DEEPEST} keys within each other.")
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
        raise StallmarkError(f"--set {override}: there is nothing inside a single value to set {part} in.")
    if not part.isdigit() or int(part) >= len(place):
        raise StallmarkError(
            f"--set {override}: {part} is no item of this list: write a number from 0 to {len(place) - 1}."
        )
    return int(part)

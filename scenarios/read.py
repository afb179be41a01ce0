"""Reads scenario files: shipped by name, others by path. Errors name the line and the fix."""

import difflib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from stallmark.driver.engines.errors import StallmarkError
from stallmark.scenarios import model
from stallmark.scenarios.model import SHIPPED, Scenario


def shipped() -> list[str]:
    """Names of the scenarios that come with the product."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def read_scenario(name_or_path: str, overrides: Sequence[str] = ()) -> Scenario:
    """`overrides` are `key=value` with dots between keys, the value in YAML, as in `workload.scale=10`."""
    path = _locate(name_or_path)
    yaml = YAML()
    try:
        document = yaml.load(path.read_text())
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise StallmarkError(f"{path}, line {line}: this is not YAML ({error.problem}).") from None
    except UnicodeDecodeError:
        raise StallmarkError(f"{path} is not a text file.") from None
    if not isinstance(document, dict):
        raise StallmarkError(f"{path} holds no scenario: it must be a mapping that begins with `name:`.")
    for override in overrides:
        _override(document, override)
    try:
        return Scenario.model_validate(document)
    except ValidationError as error:
        sentences = "\n".join(dict.fromkeys(_sentence(document, path, item) for item in error.errors()))
        raise StallmarkError(sentences) from None


def _locate(name_or_path: str) -> Path:
    if name_or_path in shipped():
        return SHIPPED / f"{name_or_path}.yaml"
    path = Path(name_or_path)
    if path.is_file():
        return path
    near = difflib.get_close_matches(name_or_path, shipped(), 1)
    hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(shipped())}."
    raise StallmarkError(f"{name_or_path} is neither a file nor a scenario of Stallmark: {hint}")


def _override(document: dict, override: str) -> None:
    keys, equals, value = override.partition("=")
    if not equals:
        raise StallmarkError(f"--set {override}: write it as key=value, for example --set measure=60s.")
    *parents, last = keys.split(".")
    place: Any = document
    for key in parents:
        place = place[int(key)] if isinstance(place, list) and key.isdigit() else place.setdefault(key, {})
    place[int(last) if isinstance(place, list) and last.isdigit() else last] = YAML(typ="safe").load(value)


def _sentence(document: Any, path: Path, item: Any) -> str:
    keys = [
        key
        for key in item["loc"]
        if isinstance(key, int) or key in _known_keys() or _has(document, item["loc"], key)
    ]
    where = ".".join(str(key) for key in keys)
    line = _line(document, keys)
    place = f"{path}, line {line}" if line else str(path)
    if item["type"] == "extra_forbidden":
        near = difflib.get_close_matches(str(keys[-1]), _known_keys(), 1)
        hint = f"did you mean {near[0]}?" if near else "remove it."
        return f"{place}: unknown key {where}: {hint}"
    if item["type"] == "missing":
        return f"{place}: {where} is missing: add it."
    message = item["msg"].removeprefix("Value error, ")
    given = item["input"]
    shown = f" (it is {given})" if isinstance(given, (str, int, float)) and str(given) not in message else ""
    return f"{place}: {where + ': ' if where else ''}{message}{shown}."


def _known_keys() -> set[str]:
    models = [
        value for value in vars(model).values() if isinstance(value, type) and issubclass(value, BaseModel)
    ]
    keys = {key for each in models for key in each.model_fields}
    return keys | set(model.DeviceModel.__dataclass_fields__)


def _has(document: Any, location: Sequence, key: Any) -> bool:
    """Is `key` one the file itself has? Pydantic adds the names of alternatives to a location."""
    place = document
    for each in location:
        if isinstance(place, dict) and each in place:
            if each == key:
                return True
            place = place[each]
        elif isinstance(place, list) and isinstance(each, int) and each < len(place):
            place = place[each]
    return False


def _line(document: Any, keys: Sequence) -> int | None:
    """The line of the innermost key that is in the file, from 1."""
    place: Any = document
    line = None
    for key in keys:
        try:
            line = 1 + (place.lc.item(key) if isinstance(key, int) else place.lc.key(key))[0]
            place = place[key]
        except (KeyError, IndexError, AttributeError, TypeError):
            break
    return line

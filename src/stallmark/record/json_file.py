"""A file of JSON that holds one part of a record as a model: read in sentences, written whole."""

import os
from pathlib import Path
from typing import Any, TypeVar

import pydantic_core
from pydantic import BaseModel, ValidationError

from stallmark.errors import StallmarkError, as_reason, mistake

Model = TypeVar("Model", bound=BaseModel)


def read_json(path: Path, *, absent: str, remedy: str) -> Any:
    """Return the content. Raise StallmarkError where it cannot be read: the sentence `absent` where there is no such
    file; else the file is named, with the `remedy` for one that is damaged."""
    try:
        return pydantic_core.from_json(path.read_bytes())
    except FileNotFoundError:
        raise StallmarkError(absent) from None
    except OSError as error:
        raise StallmarkError(f"{path} cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise StallmarkError(f"{path} is damaged ({error}): {remedy}.") from None


def as_model(kind: type[Model], found: Any, path: Path, *, remedy: str) -> Model:
    """Return the content of a file as a model. Raise StallmarkError, which names the file and the key at fault."""
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])) or "the whole"
        raise StallmarkError(f"{path} is damaged ({key}: {as_reason(mistake(first))}): {remedy}.") from None


def write_whole(path: Path, model: BaseModel) -> None:
    """Replace a file whole or not at all: it may be read at any moment."""
    draft = path.with_name(f"{path.name}.new")
    draft.write_text(as_text(model))
    os.replace(draft, path)


def as_text(model: BaseModel) -> str:
    return model.model_dump_json(indent=2) + "\n"

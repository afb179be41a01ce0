"""A file of JSON that holds one part of a record as a model: read in sentences, written whole.

Its last key is the checksum of all others, so that no damage gives other figures. It is that of their values: a file
that was merely laid out anew has the same. Files from before there were checksums have none.
"""

import json
import zlib
from pathlib import Path
from typing import Any, TypeVar

import pydantic_core
from pydantic import BaseModel, ValidationError

from stallmark.errors import StallmarkError, as_reason, mistake
from stallmark.record.files import read, replacing

CHECKSUM = "checksum"
Model = TypeVar("Model", bound=BaseModel)


def read_json(path: Path, *, absent: str, remedy: str) -> Any:
    """Return the content. Raise StallmarkError where it cannot be read: the sentence `absent` where there is no such
    file; else the file is named, with the `remedy` for one that is damaged."""
    try:
        found = pydantic_core.from_json(read(path), allow_inf_nan=False)
    except FileNotFoundError:
        raise StallmarkError(absent) from None
    except OSError as error:
        raise StallmarkError(f"{path} cannot be read ({error.strerror}).") from None
    except ValueError as error:
        raise StallmarkError(f"{path} is damaged ({error}): {remedy}.") from None
    if isinstance(found, dict) and CHECKSUM in found and found.pop(CHECKSUM) != checksum(found):
        raise StallmarkError(
            f"{path} is not as it was written (its checksum does not match): {remedy}. If you changed it on purpose, "
            f"remove its key “{CHECKSUM}”."
        )
    return found


def as_model(kind: type[Model], found: Any, path: Path, *, remedy: str) -> Model:
    """Return the content of a file as a model. Raise StallmarkError, which names the file and the key at fault."""
    try:
        return kind.model_validate(found)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"])) or "the whole"
        raise StallmarkError(f"{path} is damaged ({key}: {as_reason(mistake(first))}): {remedy}.") from None


def read_model(kind: type[Model], folder: Path, file: str, what: str, newest: int, remedy: str) -> Model:
    """Return the model in the one file that makes a folder a `what`. Raise StallmarkError, which names the file and the
    key at fault, or the format where it is newer than the `newest` that is known."""
    path = folder / file
    found = read_json(path, absent=f"{folder} is not a {what}: it has no {file}.", remedy=remedy)
    format = found.get("format") if isinstance(found, dict) else None
    if type(format) is int and format > newest:
        raise StallmarkError(
            f"{folder} has {what} format {format} and this version reads format {newest}: update Stallmark."
        )
    return as_model(kind, found, path, remedy=remedy)


def write_whole(path: Path, model: BaseModel) -> None:
    """Replace a file whole or not at all: it may be read at any moment."""
    with replacing(path) as file:
        file.write(as_text(model).encode())


def as_text(model: BaseModel) -> str:
    """Return the content of such a file: the model, and the checksum of its values."""
    text = model.model_dump_json(indent=2)
    found = checksum(pydantic_core.from_json(text))
    return f'{text[:-2]},\n  "{CHECKSUM}": "{found}"\n}}\n'


def checksum(content: dict[str, Any]) -> str:
    """Return the CRC-32 of values, whatever their order and layout."""
    return f"{zlib.crc32(json.dumps(content, sort_keys=True, separators=(',', ':')).encode()):08x}"

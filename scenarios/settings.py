"""The `settings:` of a scenario and of its variants: the server's own settings by name."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema

from stallmark.redact import holds_secret, names_secret

LONGEST_VALUE = 1_000


def _text_of_value(given: Any) -> Any:
    """Return the text that a server takes for a YAML value: true is `on`, and 0.9 is itself."""
    if isinstance(given, bool):
        return "on" if given else "off"
    if isinstance(given, float):
        plain = Decimal(repr(float(given)))
        if not plain.is_finite():
            raise ValueError(f"{given} is not a value that a server takes: write a number")
        return format(plain, "f").removesuffix(".0")
    if isinstance(given, int):
        return str(int(given))
    if not isinstance(given, str):
        raise ValueError("a value is a word or a number, as in work_mem: 64MB: put anything else in quotes")
    return given.strip()


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it holds a character that does not show: write it in one line")
    return text


def _refuse_secrets(given: Mapping[str, str]) -> Mapping[str, str]:
    for name, value in given.items():
        if names_secret(name) or holds_secret(value):
            raise ValueError(f"{name} would put a secret into every record: set it on the server yourself")
    return given


SettingName = Annotated[str, Field(min_length=1, max_length=128), AfterValidator(_printable)]
SettingValue = Annotated[
    str,
    BeforeValidator(_text_of_value),
    Field(max_length=LONGEST_VALUE),
    AfterValidator(_printable),
    WithJsonSchema({"type": ["string", "number", "boolean"]}),
]
Settings = Annotated[dict[SettingName, SettingValue], AfterValidator(_refuse_secrets)]

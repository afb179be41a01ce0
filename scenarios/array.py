"""The `array:` section: facts of the storage array that cannot be queried, written down by the operator.

array: {raid: RAID 10, drives: 24 × 600 GB 10K, dram: 8GiB, flash_cache: 800GB, write_cache: on, reduction: off}

Other keys are kept and shown as well. The sizes decide whether the active set fits into DRAM or
flash (analysis/read/active_set.py).
"""

from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from stallmark.quantities import Size
from stallmark.redact import names_secret

SIZES = ("dram", "flash_cache", "flash_tier")
_WORDS = {True: "on", False: "off"}


def _words(given: Any) -> Any:
    """Return the words given: `true` is what people write for on; a firmware of 2.10 is a name, and no number."""
    if isinstance(given, bool):
        return _WORDS[given]
    if isinstance(given, float):
        raise ValueError(f'it is read as the number {given:g}: put it in quotes ("2.10"), or its zeros are lost')
    return str(given) if isinstance(given, int) else given


Words = Annotated[str, BeforeValidator(_words), Field(min_length=1, max_length=200)]


class Array(BaseModel):
    """Sizes: `dram` of all controllers together, `flash_cache` and `flash_tier` as usable for this volume."""

    model_config = ConfigDict(extra="allow", frozen=True, use_attribute_docstrings=True)
    __pydantic_extra__: dict[str, Words]

    raid: Words | None = None
    """RAID level and layout."""
    drives: Words | None = None
    """Number and kind of the drives."""
    dram: Size | None = None
    """The memory of all controllers together."""
    flash_cache: Size | None = None
    """The flash read cache that this volume may use."""
    flash_tier: Size | None = None
    """The flash tier that this volume may use."""
    firmware: Words | None = None
    """The firmware; in quotes if it is like a number."""
    write_cache: Words | None = None
    """Its write cache: on, off, or more in words of your own."""
    reduction: Words | None = None
    """Its compression and deduplication: on, off, or more in words of your own."""

    @model_validator(mode="after")
    def _no_secrets(self) -> Self:
        if found := [name for name in self.__pydantic_extra__ if names_secret(name)]:
            raise ValueError(f"{found[0]} would be in every record and report: remove it")
        return self

    def over(self, common: "Array | None") -> "Array":
        """Return this section, completed by the one `common` to all variants."""
        if common is None:
            return self
        return Array.model_validate(common.model_dump(exclude_none=True) | self.model_dump(exclude_none=True))

    def described(self) -> dict[str, Any]:
        """Return the section for the manifest: sizes in bytes, under names that say so."""
        words = self.model_dump(exclude_none=True, exclude=set(SIZES))
        return words | {f"{name}_bytes": size for name in SIZES if (size := getattr(self, name)) is not None}

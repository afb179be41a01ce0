"""What the variants of every scenario have in common, those with a database and those about raw storage."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

VariantName = Annotated[str, Field(min_length=1, max_length=60)]


def refuse_twins(names: Sequence[str]) -> None:
    """Raises ValueError where two variants have one name."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise ValueError(f"two variants have the same name, {twice[0]!r}: give each its own")

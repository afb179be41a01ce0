"""The base of every part of the manifest: immutable, validated, and strict about names."""

from datetime import UTC, datetime
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _moment(text: str) -> str:
    datetime.fromisoformat(text)
    return text


Moment = Annotated[str, AfterValidator(_moment)]
"""A moment in UTC, ISO 8601."""
LONGEST_S: Final = 100 * 86_400
"""No run is longer: each of its seconds takes memory."""
RunSecond = Annotated[float, Field(ge=0, lt=LONGEST_S)]
"""Seconds since the run's start."""
TableName = Annotated[str, Field(pattern=r"^[a-z0-9_-]+$")]
"""The name of a table, which is that of its file: it leads nowhere else."""


def now() -> Moment:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def moment_at(seconds: float) -> Moment:
    """Return seconds since 1970 as a moment in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")


def seconds_at(moment: Moment) -> float:
    """Return a moment as seconds since 1970."""
    return datetime.fromisoformat(moment).timestamp()


class ManifestPart(BaseModel):
    """A part of the manifest. It is immutable: `changed` returns another."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def changed(self, **fields: Any) -> Self:
        """Return a copy with these fields replaced, validated as on reading."""
        return self.model_validate(dict(self) | fields)

    def facts(self) -> dict[str, Any]:
        """Return the names and values of all that is known, for people."""
        return self.model_dump(mode="json", exclude_none=True)


class TableFile(ManifestPart):
    """The Parquet file of a table as it was written. `crc32`: the checksum of all of it."""

    bytes: int
    crc32: int

"""The scenario and the variant of a run in its manifest, as their file gave them.

The fields are what the analysis uses. All other keys of the file are kept as they are: only `scenarios` knows what
they mean, and reads them again when an experiment is resumed.
"""

from typing import Literal

from pydantic import ConfigDict, Field, JsonValue

from stallmark.record.manifest.part import ManifestPart


class ScenarioPart(ManifestPart):
    """A part of the scenario file. `__pydantic_extra__` is the opaque mapping of the keys that have no field here."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, JsonValue] = Field(init=False)


class Scenario(ScenarioPart):
    name: str = ""
    title: str = ""
    answers: str = ""
    primary: str | None = None
    order: Literal["alternating", "abba", "blocks"] | None = None
    buffer_pool: str | dict[str, JsonValue] | None = None
    database: dict[str, JsonValue] | None = None
    observe: list[str] | None = None
    thresholds: list[str] | None = None
    cost: dict[str, float] | None = None


class ResourcePool(ManifestPart):
    """The limits of a Resource Governor pool."""

    iops_per_volume: int | None = None
    cpu_percent: int | None = None
    grants_percent: int | None = None


class During(ManifestPart):
    """The maintenance beside the users: one of a backup to a file, a check, and a rebuild of a table's indexes."""

    backup: str | None = None
    check: bool | None = None
    rebuild: str | None = None

    @property
    def kind(self) -> str:
        return next(iter(self.facts()))


class Variant(ScenarioPart):
    name: str = ""
    buffer_pool: str | None = None
    row_versioning: bool | None = None
    resource_pool: ResourcePool | None = None
    during: During | None = None

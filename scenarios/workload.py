"""The `workload:` section of a scenario: which database and transactions, and how large."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema, field_validator

from stallmark import format
from stallmark.loaders.plan import checked_seed, loader_for
from stallmark.quantities import parse_size
from stallmark.scenarios.section import Section, refusing
from stallmark.transactions import WORKLOADS, find_workload, known_name
from stallmark.transactions.workload import deck_of

Weight = Annotated[float, Field(strict=True, allow_inf_nan=False)]
Seed = Annotated[int, Field(ge=0, strict=True), AfterValidator(refusing(checked_seed))]


def one_of(names: Sequence[str]) -> str:
    """Return the description of a key that takes one of these names."""
    return f"{format.either([f'`{name}`' for name in names])}."


def _with_bytes(given: Any) -> Any:
    """Return a scale with its size, as in `size: 20GB`, in bytes."""
    if not isinstance(given, Mapping) or not isinstance(size := given.get("size"), str):
        return given
    try:
        return {**given, "size": parse_size(size, like="20GB or 20GiB")}
    except ValueError as error:
        raise ValueError(f"size: {error}") from None


_NUMBER = {"anyOf": [{"type": "integer"}, {"type": "number"}]}
Measures = Annotated[
    dict[str, int | float],
    BeforeValidator(_with_bytes),
    WithJsonSchema(
        {
            "type": "object",
            "properties": {"size": {"type": ["string", "integer"], "examples": ["20GB"]}},
            "additionalProperties": _NUMBER,
        }
    ),
]


class WorkloadChoice(Section):
    """The `workload:` section: database and transactions.

    `scale` is in the workload's own measures: `branches` for bank. `mix` has weights of the transactions that users
    start, or a `read_share`; `locality` is the share of its customers
    that each of several load machines takes from a part that is its own.
    """

    name: Annotated[
        str, AfterValidator(refusing(known_name)), WithJsonSchema({"type": "string", "enum": list(WORKLOADS)})
    ] = Field(description=one_of(WORKLOADS))
    scale: Annotated[Measures, Field(validate_default=True)] = {}
    """How large, in the workload's own measures: `{branches: 100}`, `{customers: 1000, days: 40}`,
    `{mailboxes: 200}`, `{factor: 1}`; or, of the brokerage, `{size: 20GB}`, which gives the customers and days that are
    best for it."""
    seed: Seed = 1
    """The seed of all data and inputs: the same seed makes the same database and the same load."""
    mix: Annotated[dict[str, Weight], Field(min_length=1)] | None = None
    """Weights of the transactions that users start, or `{read_share: 0.9}`."""
    locality: Annotated[float, Field(ge=0, le=1)] = 0.0
    """The share of its customers that each of several load machines takes from a part of its own."""

    @field_validator("scale")
    @classmethod
    def _complete(cls, given: dict[str, int | float], info: ValidationInfo) -> dict[str, int | float]:
        """Complete the scale by the workload's defaults."""
        return refusing(loader_for(info.data["name"]).scale)(given) if "name" in info.data else given  # refused already

    @field_validator("mix")
    @classmethod
    def _dealt(cls, given: dict[str, float] | None, info: ValidationInfo) -> dict[str, float] | None:
        if given is not None and "name" in info.data:
            refusing(deck_of)(find_workload(info.data["name"]), given)
        return given

    @field_validator("locality")
    @classmethod
    def _in_parts(cls, given: float, info: ValidationInfo) -> float:
        if given and "name" in info.data and not find_workload(info.data["name"]).users.has_local_customers:
            raise ValueError(
                f"{info.data['name']} has no customers of which a load machine could have a part: remove it"
            )
        return given

    def deck(self) -> dict[str, int]:
        """Return the cards of each transaction that users may start."""
        return deck_of(find_workload(self.name), self.mix)

    def part(self, workload: str) -> "WorkloadChoice":
        """Return the choice of one of its workloads alone."""
        return WorkloadChoice(name=workload, scale=loader_for(workload).own(self.scale), seed=self.seed)

    def __str__(self) -> str:
        if not self.scale:
            return self.name
        return f"{self.name} ({', '.join(f'{measure} {value:,}' for measure, value in self.scale.items())})"

"""The `variants:` of a scenario, the sizes of a memory curve among them, and the `settings:` of its server."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    Tag,
    WithJsonSchema,
    field_validator,
)

from stallmark.engines.abilities import Folders
from stallmark.errors import StallmarkError
from stallmark.format import size as written
from stallmark.quantities import Pool, PoolSize, Seconds, parse_share
from stallmark.redact import holds_secret, names_secret
from stallmark.scenarios import MAPPING, WORD, Section, VariantName, WordOrMapping
from stallmark.scenarios.storage import Array, EmulatedArrays
from stallmark.stats.curve_search import CurveSpec

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


# The `variants:` of a scenario, and the `before:` hook that reconfigures the array for one.


class Hook(Section):
    """A command, or a request to the operator, between runs."""

    command: Annotated[list[str], Field(min_length=1)] | None = None
    """A program and its arguments, run without a shell."""
    timeout: Annotated[Seconds, Field(ge=1)] | None = None
    """The maximum duration of the command, 10 minutes by default."""
    ask: Annotated[str, Field(min_length=1)] | None = None
    """A request to the operator; the experiment waits for the answer."""

    @field_validator("command")
    @classmethod
    def _refuse_secrets(cls, given: list[str] | None) -> list[str] | None:
        if any(map(holds_secret, given or ())):
            raise ValueError("a password in it would be in every record: let the command read it from a file")
        return given

    def mistakes(self) -> Iterator[str]:
        if (self.command is None) == (self.ask is None):
            yield "write either a command ({command: [program, argument]}) or what to ask ({ask: …})"
        if self.ask and self.timeout:
            yield "timeout applies to a command only: remove it, as an operator has no time limit"


class OwnReset(Hook):
    """How a user's own database is restored before every run: from a backup, by a `command`, or by an operator."""

    restore: Annotated[str, Field(min_length=1)] | None = None
    """The backup: on SQL Server a file of the server's machine, on PostgreSQL an archive of pg_dump on this one."""

    def mistakes(self) -> Iterator[str]:
        if not self.restore:
            yield from super().mistakes()
        elif self.command or self.ask or self.timeout:
            yield "restore names a backup: leave out the other keys"

    def __str__(self) -> str:
        if self.restore:
            return f"restore {self.restore}"
        return f"ask: {self.ask}" if self.ask else f"command: {' '.join(self.command or ())}"


class ResourcePool(Section):
    """Limits of a Resource Governor pool. They do not divide the buffer pool."""

    iops_per_volume: Annotated[int, Field(ge=1, strict=True)] | None = None
    """The maximum number of I/Os per second on each volume."""
    cpu_percent: Annotated[int, Field(ge=1, le=100, strict=True)] | None = None
    """The maximum share of the CPUs."""
    grants_percent: Annotated[int, Field(ge=1, le=100, strict=True)] | None = None
    """The maximum share of the memory that the server grants to queries for sorts and hashes."""

    def mistakes(self) -> Iterator[str]:
        if all(value is None for _, value in self):
            yield "write a limit: iops_per_volume, cpu_percent or grants_percent"


class During(Section):
    """Maintenance next to the users, repeated from the start of measuring: a backup, a check or a rebuild."""

    backup: Annotated[str, Field(min_length=1)] | None = None
    """Back up the database to this file of the server, or read it and write nothing with NUL."""
    check: Literal[True] | None = None
    """Check the whole database (DBCC CHECKDB)."""
    rebuild: Annotated[str, Field(pattern=r"^\w+\.\w+$")] | None = None
    """The table whose indexes are rebuilt."""

    def mistakes(self) -> Iterator[str]:
        if sum(value is not None for _, value in self) != 1:
            yield "write one of {backup: NUL}, {check: true} and {rebuild: schema.table}"

    @property
    def kind(self) -> str:
        return next(name for name, value in self if value is not None)

    @property
    def target(self) -> str:
        return self.backup or self.rebuild or ""


Folder = Annotated[str, Field(min_length=1)]


class PlaceChoice(Section):
    """The folders of a variant's database: on this machine with the embedded engine, on the server with SQL Server.
    Every run is restored into them, and at the end the database is back in its original folders."""

    data: Folder
    """The folder of the data files."""
    log: Folder | None = None
    """The folder of the log; by default with the data."""
    filegroups: dict[str, Folder] = {}
    """SQL Server: the folders of filegroups outside `data`, by name."""

    def folders(self) -> Folders:
        return Folders(self.data, self.log, self.filegroups)


EmulatedArraysOrBare = Annotated[
    Annotated[Literal["bare"], Tag(WORD)] | Annotated[EmulatedArrays, Tag(MAPPING)], WordOrMapping
]


class Variant(Section):
    """One side of a comparison. Omitted keys are as in the scenario."""

    name: VariantName
    """The variant's name in reports."""
    buffer_pool: Pool | None = None
    """The memory for pages, in place of the scenario's."""
    emulated_array: EmulatedArraysOrBare | None = None
    """An emulated array, in place of the scenario's; `bare` is the real disk."""
    place: PlaceChoice | None = None
    """The folders of the variant's database, instead of those in which it was built: `{data: /mnt/ssd/db, log:
    /mnt/log}`. The database is built once and restored into the folders before each run."""
    array: Array | None = None
    """Facts of the real array in this variant, which override those of the scenario."""
    before: Hook | None = None
    """The command or request that changes the array to this variant's, after a run of another variant."""
    settings: Settings = {}
    """Settings of the server, over those of the scenario: `{work_mem: 64MB, synchronous_commit: off}`."""
    row_versioning: Annotated[bool, Field(strict=True)] | None = None
    """SQL Server: whether READ COMMITTED reads row versions (READ_COMMITTED_SNAPSHOT) or locks what it reads."""
    resource_pool: ResourcePool | None = None
    """SQL Server: limits of all users together, by a pool of Resource Governor."""
    during: During | None = None
    """Maintenance next to the users."""
    without: list[str] = []
    """The names of loads that do not run in this variant."""


# A memory curve in place of one buffer pool: `buffer_pool: {curve: auto, from: 2 %, to: 100 %}`.

FEWEST, MOST = 5, 24
"""Numbers of sizes: fewer give no error estimate, and more would differ by less than repeated runs do."""

Tolerance = Annotated[
    float,
    BeforeValidator(parse_share),
    Field(ge=0.01, le=0.5),
    PlainSerializer(lambda share: f"{share * 100:.12g} %", when_used="json"),
    WithJsonSchema({"type": "string", "examples": ["5 %"], "default": "5 %"}),
]


class PoolCurve(Section):
    """Sizes of the buffer pool that are chosen while the experiment runs, where the curve of memory bends: of one
    variant, that which has no `buffer_pool` of its own."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    curve: Literal["auto"]
    """The only word there is: `auto`."""
    from_: Annotated[Pool, Field(alias="from")]
    """The smallest size, or share of the data."""
    to: Pool
    """The largest."""
    sizes: Annotated[int, Field(ge=FEWEST, le=MOST, strict=True)] = 9
    """The maximum number of sizes. Each is run `repeats` times."""
    tolerance: Tolerance = 0.05
    """The share of its largest value within which the curve is to be known; then no further size is chosen."""

    def mistakes(self) -> Iterator[str]:
        a, b = self.from_, self.to
        for low, high in ((a.share, b.share), (a.size_bytes, b.size_bytes)):
            if low is not None and high is not None and low >= high:
                yield f"from {a} is not below to {b}: a curve needs two sizes"

    def spec(self, data_bytes: int) -> CurveSpec:
        """Return the curve in bytes, of data that large. Raise StallmarkError if that leaves no two sizes."""
        low, high = self.from_.resolve(data_bytes), self.to.resolve(data_bytes)
        if low >= high:
            raise StallmarkError(
                f"buffer_pool: from {self.from_} ({written(low)}) is not below to {self.to} ({written(high)}), of "
                f"{written(data_bytes)} of data: change one of the two, or choose a larger scale."
            )
        return CurveSpec(low, high, self.sizes, self.tolerance)


class Cost(Section):
    """The cost of a GiB of memory and of one of flash, in one currency, with whatever belongs to it."""

    memory: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """The cost of a GiB of memory."""
    flash: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    """The cost of a GiB of flash."""


PoolOrCurve = Annotated[Annotated[Pool, Tag(WORD)] | Annotated[PoolCurve, Tag(MAPPING)], WordOrMapping]


def variant_of_size(variant: Variant, size_bytes: int, alone: bool) -> Variant:
    """Return the curve's variant with one size; its name is the size, where there is no other variant (`alone`)."""
    size = written(size_bytes).replace("\u00a0", " ")  # a name is typed
    name = size if alone else f"{variant.name}, {size}"
    return variant.model_copy(update={"name": name, "buffer_pool": PoolSize(size_bytes=size_bytes)})


def not_chosen(variant: Variant, numbers: Iterable[int]) -> Iterator[Variant]:
    """Yield a variant for each size that is not chosen yet, by number. It has no size."""
    for number in numbers:
        yield variant.model_copy(update={"name": f"{variant.name}, size {number}"})

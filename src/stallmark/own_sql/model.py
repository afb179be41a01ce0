"""The model of `workload.yaml`: transactions, their weights, and the sources of their parameters."""

import re
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema, field_validator

from stallmark.errors import StallmarkError
from stallmark.own_sql.parameter_sources import names_in
from stallmark.own_sql.pgbench_scripts import parse_script
from stallmark.own_sql.statements import DIALECTS, Kind, Statement, split
from stallmark.quantities import finite, parse_seconds
from stallmark.scenarios import Section
from stallmark.scenarios.validation_errors import OWN_WORDS

MOST_WEIGHT = 1_000
MOST_PER_S = 10_000
_IDENTIFIER = re.compile(r"[^\W\d]\w*")


def _offset(given: Any) -> Any:
    """Return a time before (`-30d`) or after now in seconds."""
    if not isinstance(given, str):
        return given
    text = given.strip()
    sign = -1 if text.startswith("-") else 1
    return sign * parse_seconds(text.lstrip("+-"))


LONGEST_S = 100 * 365 * 86_400
"""A hundred years: times that are much further away have no date."""


Offset = Annotated[
    float, BeforeValidator(_offset), WithJsonSchema({"type": ["string", "number"], "examples": ["-30d"]})
]


_UNITS = {"s": 1, "min": 60, "h": 3600}


def _per_second(given: Any) -> Any:
    """Return the number per second of a rate such as `20/s`, `90/min` or `5/h`."""
    if not isinstance(given, str):
        return given
    number, slash, unit = given.replace(" ", "").partition("/")
    try:
        return finite(number) / _UNITS[unit if slash else "s"]
    except (KeyError, ValueError):
        raise ValueError(f"{given!r} is not a rate: write it as 20/s, 90/min or 5/h") from None


# How one of a source's rows is drawn.


class Zipf(Section):
    zipf: Annotated[float, Field(gt=0, le=10, allow_inf_nan=False)]
    """The exponent: row k is drawn in proportion to 1/k to this power, so the first row most often."""


class Normal(Section):
    normal: Annotated[float, Field(ge=2, le=100, allow_inf_nan=False)]
    """The half range in standard deviations, as in pgbench's random_gaussian: the middle is drawn most often."""


class Exponential(Section):
    exponential: Annotated[float, Field(gt=0, le=1000, allow_inf_nan=False)]
    """The decline, as in pgbench's random_exponential: the first is drawn most often."""


def _draw_kind(given: Any) -> str:
    if isinstance(given, BaseModel):
        return f"draw {type(given).__name__.lower()}"
    # The kind is chosen by its key: without that pydantic reports the mistakes of every kind in the union.
    keys = [key for key in ("zipf", "normal", "exponential") if isinstance(given, dict) and key in given]
    return f"draw {keys[0]}" if keys else "draw word"


_Curves = (
    Annotated[Zipf, Tag("draw zipf")]
    | Annotated[Normal, Tag("draw normal")]
    | Annotated[Exponential, Tag("draw exponential")]
)
Spread = Annotated[Annotated[Literal["uniform"], Tag("draw word")] | _Curves, Discriminator(_draw_kind)]
RowSpread = Annotated[
    Annotated[Literal["uniform", "in order", "weight"], Tag("draw word")] | _Curves, Discriminator(_draw_kind)
]


class _Rows(Section):
    draw: RowSpread = "uniform"
    """`uniform`, `in order`, `weight` (the last column), `{zipf: 1.1}`, `{normal: 3}` or `{exponential: 5}`."""
    apart: bool = False
    """Give each user rows of its own."""


class QueryRows(_Rows):
    """Rows of a query that is executed once, before the load."""

    query: Annotated[str, Field(min_length=1)]
    """A SELECT; its columns are the values of the names, in their order."""


class FileRows(_Rows):
    """Rows of a CSV or Parquet file of the folder."""

    file: str
    """The file; a CSV has a line of headers."""
    columns: list[str] | None = None
    """Its columns, in the order of the names; by default those of these names."""
    rows: list[list[str | int | float | bool | None]] = []
    """The rows, as they were read."""


class Values(Section):
    """Values that are written out."""

    values: Annotated[list[str | int | float | bool | None], Field(min_length=1)]
    draw: RowSpread = "uniform"
    """As of a query's rows."""

    def mistakes(self) -> Iterator[str]:
        if self.draw == "weight":
            yield "values have no column of weights: write a value more often, or take a query"


def _whole(given: Any) -> Any:
    """Return 1e6 as a whole number."""
    return int(given) if isinstance(given, float) and given.is_integer() else given


Limit = Annotated[
    int | Annotated[float, Field(allow_inf_nan=False)], BeforeValidator(_whole), WithJsonSchema({"type": "number"})
]


class Range(Section):
    """Numbers of a range."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    from_: Annotated[Limit, Field(alias="from")]
    """The smallest."""
    to: Limit
    """The largest."""
    decimals: Annotated[int, Field(ge=0, le=9)] = 0
    """Digits behind the point."""
    draw: Spread = "uniform"
    """`uniform`, or `{zipf: 1.1}`, `{normal: 3}`, `{exponential: 5}`, the smallest (in the middle) most often."""

    def mistakes(self) -> Iterator[str]:
        if self.from_ > self.to:
            yield f"from {self.from_} to {self.to} is an empty range: exchange them"
        if not self.decimals and (isinstance(self.from_, float) or isinstance(self.to, float)):
            yield "from and to are not whole numbers: add decimals: 2"
        if (
            # Zipf alone draws by a list with a total for each number, which every process holds.
            self.draw != "uniform"
            and (self.to - self.from_) * 10**self.decimals > 10_000_000
            and isinstance(self.draw, Zipf)
        ):
            yield "a Zipf range has at most ten million numbers: take fewer"


class Window(Section):
    """A stretch of time that moves with the workload's clock."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    from_: Annotated[Offset, Field(alias="from")] = 0.0
    """Its begin, from now: `-30d`."""
    to: Offset = 0.0
    """Its end, from now."""

    def mistakes(self) -> Iterator[str]:
        if max(abs(self.from_), abs(self.to)) > LONGEST_S:
            yield "the window is more than a hundred years away: take a nearer one"
        if self.from_ > self.to:
            yield "the window ends before it begins: exchange from and to"


class Moment(Section):
    """A time of a window, which moves while the load runs; in UTC."""

    model_config = ConfigDict(populate_by_name=True, serialize_by_alias=True)

    time: Annotated[
        Window,
        BeforeValidator(lambda given: {} if given == "now" else given, json_schema_input_type=Window | Literal["now"]),
    ]
    """`now`, or `{from: -30d, to: 0s}`."""
    as_: Annotated[Literal["timestamp", "date"], Field(alias="as")] = "timestamp"
    """`timestamp` or `date`."""


class Fake(Section):
    """Values of a Faker provider."""

    faker: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]
    """The provider: `name`, `city`, `iban`."""
    locale: str = "en_US"
    """The locale: `de_DE`."""
    arguments: dict[str, Any] = {}
    """Arguments of the provider."""
    distinct: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """How many values are made before the load; each is drawn equally often."""


class Returned(Section):
    """Columns of the first row that an earlier statement of the same transaction has returned. Without a row the
    transaction is rolled back."""

    result: Annotated[int, Field(ge=1)]
    """The statement, counted from 1."""
    column: Annotated[int, Field(ge=1)] = 1
    """The column of the first name, counted from 1; further names have the columns behind it."""


_KEYS = ("query", "file", "values", "from", "time", "faker", "result")
_BY_CLASS = {QueryRows: "query", FileRows: "file", Values: "values", Range: "from", Moment: "time", Fake: "faker",
             Returned: "result"}  # fmt: skip


def _source_kind(given: Any) -> str | None:
    if isinstance(given, BaseModel):
        return f"source {_BY_CLASS[type(given)]}"
    keys = [key for key in _KEYS if key in given] if isinstance(given, dict) else []
    return f"source {keys[0]}" if len(keys) == 1 else None


Source = Annotated[
    Annotated[QueryRows, Tag("source query")]
    | Annotated[FileRows, Tag("source file")]
    | Annotated[Values, Tag("source values")]
    | Annotated[Range, Tag("source from")]
    | Annotated[Moment, Tag("source time")]
    | Annotated[Fake, Tag("source faker")]
    | Annotated[Returned, Tag("source result")],
    Discriminator(
        _source_kind,
        custom_error_type=OWN_WORDS,
        custom_error_message="a source has exactly one of the keys query, file, values, from, time, faker and result",
    ),
]


def _refuse_names(given: Any) -> Any:
    known: set[str] = set()
    for key in given if isinstance(given, dict) else ():
        for name in names_in(key):
            if not _IDENTIFIER.fullmatch(name):
                raise ValueError(f"{name!r} is not a parameter's name: write letters, digits and _")
            if name in known:
                raise ValueError(f"{name} has two sources: leave one")
            known.add(name)
    return given


Sources = Annotated[dict[str, Source], BeforeValidator(_refuse_names)]


class OwnTransaction(Section):
    """A transaction: a file of statements."""

    sql: Annotated[str, Field(min_length=1)]
    """Its statements; of a folder, the text of the file of its name."""
    weight: Annotated[int, Field(ge=0, le=MOST_WEIGHT, strict=True)] = 1
    """How often users start it, beside the weights of the others."""
    rate: (
        Annotated[
            float,
            BeforeValidator(_per_second),
            Field(gt=0, le=MOST_PER_S),
            WithJsonSchema({"type": ["string", "number"], "examples": ["20/s", "90/min"]}),
        ]
        | None
    ) = None
    """In place of a weight, the number due each second, `20/s`, whatever users and server do. Up to as many sessions
    as there are users execute them."""
    every: Annotated[Offset, Field(gt=0)] | None = None
    """In place of a weight, the time after which it is due again, `10s`, unless the last one is under way."""
    isolation: Literal["read committed", "repeatable read", "serializable"] = "read committed"
    """Its isolation level."""
    one_transaction: bool = True
    """`false` commits each statement by itself."""
    limit: Annotated[Offset, Field(gt=0)] | None = None
    """The time within which nine of ten should end."""
    reads_only: bool | None = None
    """`true` if it only reads; by default judged by the words of its statements."""
    script: Literal["pgbench"] | None = None
    """`pgbench` for a script of pgbench."""
    parameters: Sources = {}
    """Sources for it alone."""

    def mistakes(self) -> Iterator[str]:
        if not self.one_transaction and self.isolation != "read committed":
            yield "isolation is of one transaction, and one_transaction: false makes none: leave out one of the two"

    @property
    def is_started_by_users(self) -> bool:
        """Return True if users start it."""
        return bool(self.weight) and not (self.rate or self.every)


class OwnSql(Section):
    """A workload of a user's own SQL."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_-]*$", max_length=40)]
    """Its name; of a folder, the folder's."""
    transactions: Annotated[dict[str, OwnTransaction], Field(min_length=1, max_length=100)]
    """The transactions; each is the file of its name, and a number alone is its weight."""
    parameters: Sources = {}
    """Sources of parameters, by name, or by names whose values belong together: `customer, region`."""
    primary: str | None = None
    """The transaction whose rate is the result; by default all count."""
    define: dict[str, int | float | str] = {}
    """Variables of pgbench's scripts, as `--define`."""
    setup: str = ""
    """SQL that fills a new database of the embedded PostgreSQL; of a folder, the text of `setup.sql`."""
    conditions: dict[str, str] = {}
    """Queries that return no row as long as all is well; of a folder, the files of `conditions`."""

    @field_validator("transactions")
    @classmethod
    def _plainly_named(cls, given: dict[str, OwnTransaction]) -> dict[str, OwnTransaction]:
        for name in given:
            if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,59}", name):
                raise ValueError(f"{name!r} is not a transaction's name: call its file by letters, digits, _ and -")
        return given

    def mistakes(self) -> Iterator[str]:
        users = {name for name, transaction in self.transactions.items() if transaction.is_started_by_users}
        if not users:
            yield from self._mistake_without_users()
        if self.primary and self.primary not in users:
            yield f"primary is {self.primary}, which users do not start: there are {', '.join(sorted(users))}"
        for name, transaction in self.transactions.items():
            yield from (f"{name}.sql: {mistake}" for mistake in self._mistakes_in(transaction))
        yield from self.query_mistakes(DIALECTS)

    def _mistake_without_users(self) -> Iterator[str]:
        rates = [transaction.rate for transaction in self.transactions.values() if transaction.rate]
        if not rates:
            yield "no transaction has a weight: users would start nothing"
            return
        yield (
            "every transaction has a rate, and users would start nothing: write weights in proportion to the rates, "
            f"and give the load their sum, --rate {sum(rates):g}"
        )

    def query_mistakes(self, dialects: Iterable[str]) -> Iterator[str]:
        """Yield the mistakes of queries for parameters and of conditions, which are executed by themselves, if they
        have them in each of the dialects."""
        queries = {f"conditions/{name}.sql": text for name, text in self.conditions.items()}
        for sources in (self.parameters, *(transaction.parameters for transaction in self.transactions.values())):
            queries |= {
                f"the query for {key}": source.query for key, source in sources.items() if isinstance(source, QueryRows)
            }
        for where, text in queries.items():
            if not any(_is_one_read(text, dialect) for dialect in dialects):
                yield f"{where} is not one SELECT: write one that only reads"

    def _mistakes_in(self, transaction: OwnTransaction) -> Iterator[str]:
        if transaction.script:
            try:
                parse_script(transaction.sql, self.define)
            except StallmarkError as error:
                yield str(error)
            return
        # Which dialect it is only the server decides: a mistake is one in each of them.
        by_dialect = [list(mistakes_in(self, transaction, dialect)) for dialect in DIALECTS]
        if all(by_dialect):
            yield by_dialect[0][0]


def _is_one_read(text: str, dialect: str) -> bool:
    try:
        # Each process executes a query for parameters by itself: one that writes would do so as often.
        return [statement.kind for statement in split(text, dialect)] == [Kind.READ]
    except StallmarkError:
        return False


def mistakes_in(workload: OwnSql, transaction: OwnTransaction, dialect: str) -> Iterator[str]:
    """Yield the mistakes in a transaction's statements, taken as this dialect."""
    try:
        statements = split(transaction.sql, dialect)
    except StallmarkError as error:
        yield str(error)
        return
    if not statements:
        yield "it has no statement: write one, or remove the file"
    if transaction.rate and transaction.every:
        yield "rate and every are two ways to say when it is due: leave one"
    if (transaction.rate or transaction.every) and transaction.weight > 1:
        yield "a weight is of what users start, and a rate or an interval of the rest: leave one"
    own, shared = transaction.parameters, workload.parameters
    by_name = {name: source for sources in (shared, own) for key, source in sources.items() for name in names_in(key)}
    for number, statement in enumerate(statements, 1):
        yield from _mistakes_of_kind(statement)
        # PostgreSQL itself refuses writes of a transaction that reads only; SQL Server has no such transactions.
        if transaction.reads_only and dialect == "mssql" and statement.changes_rows:
            yield f"line {statement.line}: it writes: leave out `reads_only: true`"
        for parameter in statement.names:
            source = by_name.get(parameter)
            if source is None:
                yield f"line {statement.line}: :{parameter} has no source: write one below `parameters`"
            elif isinstance(source, Returned) and source.result >= number:
                problem = (
                    "which does not come before this one"
                    if source.result <= len(statements)
                    else f"and the last one is {len(statements)}"
                )
                yield f"line {statement.line}: :{parameter} is of statement {source.result}, {problem}: change `result`"
            elif (transaction.every or transaction.rate) and (way := _draw_by_users(source)):
                yield (
                    f"line {statement.line}: :{parameter} is {way}, and no user starts what comes at a rate or at "
                    "intervals: write another source for it below its `parameters`"
                )


def _draw_by_users(source: Any) -> str:
    """Return in words how users' numbers decide which rows of a source they draw; empty if they do not."""
    if getattr(source, "apart", False):
        return "apart for each user"
    return "drawn in order by users" if getattr(source, "draw", "") == "in order" else ""


def _mistakes_of_kind(statement: Statement) -> Iterator[str]:
    word = statement.word
    if statement.kind is Kind.DDL:
        yield f"line {statement.line}: {word} changes tables or the server, and a load does not: run it before"
    elif statement.kind is Kind.CONTROL:
        yield f"line {statement.line}: {word} is Stallmark's part: remove it, and see isolation and one_transaction"
    elif statement.kind is Kind.REFUSED and word == "USE":
        yield f"line {statement.line}: USE changes the database: name it in --server"
    elif statement.kind is Kind.REFUSED:
        yield f"line {statement.line}: {word} cannot be a statement of a load: remove it"

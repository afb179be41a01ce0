"""The responder's codecs, requests decoded, and a whole conversation without a socket."""

import datetime
from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tds import tokens
from support.tds.answers import Error, Rows
from support.tds.client import OPENING, batch, call, parameter, rpc
from support.tds.datatypes import (
    BIGINT,
    BIT,
    DATE,
    FLOAT,
    INT,
    SMALLINT,
    TINYINT,
    DataType,
    char,
    datetime2,
    decimal,
    nvarchar,
    varbinary,
    varchar,
)
from support.tds.packets import IGNORE, RESET_CONNECTION, SQL_BATCH, Assembler, frame
from support.tds.requests import called_in, read_bulk, read_requests, short_key
from support.tds.script import Script
from support.tds.session import Session, Shared
from support.tds.tokens import Column

pytestmark = pytest.mark.thorough

TEXT = nvarchar()

# Codecs


def within(bits: int) -> st.SearchStrategy[int]:
    return st.integers(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def decimals(precision: int, scale: int) -> st.SearchStrategy[tuple[DataType, Any]]:
    units = st.integers(-(10**precision) + 1, 10**precision - 1)
    return units.map(lambda n: (decimal(precision, scale), Decimal(n).scaleb(-scale, Context(prec=80))))


LATIN = st.text(st.characters(codec="cp1252"), max_size=50)
UNICODE = st.text(st.characters(codec="utf-16"), max_size=50)
MOMENTS = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31, 23, 59, 59, 999999))
VALUES: st.SearchStrategy[tuple[DataType, Any]] = st.one_of(
    st.tuples(st.just(TINYINT), st.integers(0, 255)),
    st.tuples(st.just(SMALLINT), within(16)),
    st.tuples(st.just(INT), within(32)),
    st.tuples(st.just(BIGINT), within(64)),
    st.tuples(st.just(BIT), st.booleans()),
    st.tuples(st.just(FLOAT), st.floats(allow_nan=False)),
    st.tuples(st.integers(1, 38), st.integers(0, 38)).flatmap(lambda p: decimals(p[0], min(p))),
    st.tuples(st.sampled_from([varchar(), varchar(8000), char(50)]), LATIN),
    st.tuples(st.sampled_from([nvarchar(), nvarchar(100)]), UNICODE),
    st.tuples(st.sampled_from([varbinary(), varbinary(100)]), st.binary(max_size=100)),
    st.tuples(st.just(varbinary()), st.binary(min_size=9000, max_size=9001)),
    st.tuples(st.just(DATE), st.dates()),
    st.tuples(st.sampled_from([datetime2(6), datetime2(7)]), MOMENTS),
    st.tuples(st.just(datetime2(3)), MOMENTS.map(lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000))),
    st.tuples(st.just(datetime2(0)), MOMENTS.map(lambda t: t.replace(microsecond=0))),
    st.tuples(st.just(DataType(0x29, scale=6)), st.times()),
)  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "value"), [(decimal(3, 2), Decimal("10")), (varchar(2), "abc"), (DataType(0x38, 4), None)]
)
def test_a_value_that_does_not_fit_is_refused(kind, value):
    with pytest.raises(ValueError):
        kind.encode(value)


def test_a_message_the_client_gave_up_is_none():
    packet = bytearray(frame(SQL_BATCH, b"half", 4096))
    packet[1] |= IGNORE
    assembler = Assembler()
    assert assembler.feed(bytes(packet)) == []
    assert assembler.feed(frame(SQL_BATCH, b"whole", 4096))[0].body == b"whole"


@given(st.lists(st.tuples(VALUES, st.booleans(), st.booleans())))
def test_parameters_of_a_call(described):
    sent = [parameter(kind, None if null else value, "@p", out) for (kind, value), null, out in described]
    [request] = read_requests(rpc(call("[dbo].[p]", *sent)), 1, 1)
    assert request.called == ("dbo.p",)
    assert request.values == tuple(None if null else value for (_, value), null, _ in described)
    assert [it.output for it in request.parameters] == [out for _, _, out in described]


@pytest.mark.parametrize(
    ("text", "procedures"),
    [
        ("BEGIN TRAN; EXEC dbo.a 1; execute [dbo].[b] @x", ("dbo.a", "dbo.b")),
        ("exec @r = c", ("c",)),
        ("[dbo].d", ("dbo.d",)),
        ("select 1", ()),
    ],
)
def test_procedures_called_in_a_text(text, procedures):
    assert called_in(text) == procedures


def test_the_short_key_knows_the_statement_and_not_the_values():
    def prepared(handle: int | None, text: str, value: int, kind: DataType = TEXT) -> bytes | None:
        arguments = [(INT, handle), (kind, "@P1 int"), (kind, text), (INT, value)]
        return short_key(rpc(call(13, *(parameter(*argument) for argument in arguments))))

    assert prepared(None, "EXEC p @P1", 1) == prepared(3, "EXEC p @P1", 2) != prepared(3, "EXEC q @P1", 2)
    assert prepared(1, "EXEC p @P1", 1, nvarchar(4000)) == prepared(2, "EXEC p @P1", 2, nvarchar(4000))
    assert short_key(rpc(call("p", parameter(INT, 1)))) == short_key(rpc(call("p", parameter(INT, 2))))
    assert short_key(rpc(call(12, parameter(INT, 1)))) != short_key(rpc(call(12, parameter(INT, 2))))


@given(st.lists(st.tuples(VALUES, st.booleans()), min_size=1, max_size=10), st.integers(0, 3))
def test_rows_of_a_bulk_load(described, count):
    columns = [Column(f"c{number}", kind) for number, ((kind, _), _) in enumerate(described)]
    values = tuple(None if null else value for (_, value), null in described)
    types = [column.type for column in columns]
    body = tokens.columns(columns) + tokens.row(types, values) * count + tokens.done(tokens.DONE, 0)
    assert read_bulk(body) == (columns, [values] * count)


def test_rows_that_leave_out_their_nulls():
    columns = [Column("a", INT), Column("b", INT)]
    body = tokens.columns(columns) + b"\xd2\x02" + INT.encode(5) + tokens.done(tokens.DONE, 0)
    assert read_bulk(body)[1] == [(5, None)]


# A conversation


class Wire:
    """The writing end of a session."""

    def __init__(self) -> None:
        self.sent = bytearray()
        self.closed: bool | None = None

    def write(self, data: bytes) -> None:
        self.sent += data

    def close(self, reset: bool) -> None:
        self.closed = reset

    def later(self, seconds: float, go_on: Callable[[], None]) -> None:
        go_on()

    def from_elsewhere(self, go_on: Callable[[], None]) -> None:
        go_on()


def converse(parts: list[bytes], script: Script, record: bool = True) -> tuple[Wire, Shared]:
    wire, shared = Wire(), Shared(script, "none", record)
    session = Session(shared, wire)
    for part in parts:
        session.receive(part)
    return wire, shared


@given(st.data())
def test_a_conversation_does_not_depend_on_where_it_is_cut(data):
    script = Script()
    script.sql("rows", Rows([Column("a", INT)], [(1,)] * 200))
    stream = OPENING + batch("select rows " + "x" * 500) + batch("set nocount on")
    places = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    parts = [stream[a:b] for a, b in zip([0, *places], [*places, len(stream)], strict=True) if b > a]
    wire, shared = converse(parts, script)
    assert wire.sent == converse([stream], script)[0].sent
    assert [(it.kind, it.trip) for it in shared.requests] == [("batch", 1), ("batch", 2)]


def test_without_a_record_the_answers_are_the_same():
    script = Script()
    script.procedure("p", Rows([Column("a", INT)], [(1,)]))
    stream = OPENING + (batch("begin tran; exec p") + batch("exec p; commit")) * 3
    remembered, _ = converse([stream], script)
    benchmark, shared = converse([stream], script, record=False)
    assert remembered.sent == benchmark.sent
    assert shared.canned and not shared.requests


def test_a_reset_is_recorded_and_acknowledged():
    packet = bytearray(batch("set nocount on"))
    packet[1] |= RESET_CONNECTION
    wire, shared = converse([OPENING, bytes(packet)], Script())
    assert shared.requests[0].resets
    assert tokens.changed(tokens.WAS_RESET, b"\0") in wire.sent


def test_transactions_begin_and_end_on_the_wire():
    script = Script()
    script.procedure("dead", Error(1205, "deadlock", severity=13))
    began, committed = tokens.transaction_began(), tokens.transaction_ended(tokens.COMMITTED)
    rolled_back = tokens.transaction_ended(tokens.ROLLED_BACK)
    wire, _ = converse([OPENING, batch("BEGIN TRAN"), batch("COMMIT"), batch("IF @@TRANCOUNT > 0 COMMIT")], script)
    assert wire.sent.count(began) == wire.sent.count(committed) == 1
    wire, _ = converse([OPENING, batch("BEGIN TRAN; EXEC dead; COMMIT"), batch("BEGIN TRAN")], script)
    assert (wire.sent.count(began), wire.sent.count(committed), wire.sent.count(rolled_back)) == (2, 0, 1)

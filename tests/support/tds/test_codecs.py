"""The responder's codecs against their definition, and requests decoded."""

import datetime
import struct
from decimal import Context, Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.tds import tokens
from support.tds.answers import Count, Flow, Output, Status, render
from support.tds.client import HEADERS, call, login_bytes, parameter, rpc
from support.tds.datatypes import (
    BIGINT,
    BIT,
    DATE,
    FLOAT,
    INT,
    REAL,
    SMALLINT,
    TINYINT,
    UNIQUEIDENTIFIER,
    DataType,
    char,
    datetime2,
    decimal,
    nvarchar,
    read_type,
    varbinary,
    varchar,
)
from support.tds.login import read_login, read_prelogin, write_prelogin
from support.tds.packets import BULK_LOAD, IGNORE, RPC, SQL_BATCH, Assembler, Malformed, Message, frame
from support.tds.reading import Reader, short_text
from support.tds.requests import called_in, read_bulk, read_requests, short_key
from support.tds.tokens import Column

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
    st.tuples(st.just(DataType(0x38, 4)), within(32)),
    st.tuples(st.just(BIT), st.booleans()),
    st.tuples(st.just(FLOAT), st.floats(allow_nan=False)),
    st.tuples(st.just(REAL), st.floats(allow_nan=False, width=32)),
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
    st.tuples(st.just(UNIQUEIDENTIFIER), st.uuids()),
)  # fmt: skip
NULLABLE = VALUES.filter(lambda it: it[0].token != 0x38)


@given(VALUES)
def test_values_survive_the_wire(typed):
    kind, value = typed
    reader = Reader(kind.encode(value))
    assert kind.read(reader) == value
    assert reader.left == 0


@given(NULLABLE)
def test_every_nullable_type_has_a_null(typed):
    kind, _ = typed
    reader = Reader(kind.encode(None))
    assert kind.read(reader) is None
    assert reader.left == 0


@given(VALUES)
def test_descriptions_of_types_survive_the_wire(typed):
    kind, _ = typed
    reader = Reader(kind.info())
    assert read_type(reader) == kind
    assert reader.left == 0


@pytest.mark.parametrize(
    ("kind", "value", "encoded"),
    [
        (INT, -2, "04feffffff"),
        (decimal(5, 2), Decimal("-1.23"), "05007b000000"),
        (nvarchar(5), "aé", "0400" "6100e900"),
        (varchar(5), "é", "0100e9"),
        (DATE, datetime.date(2024, 2, 29), "0380460b"),
        (datetime2(3), datetime.datetime(1, 1, 2, 0, 0, 1), "07e8030000010000"),
        (nvarchar(), "a", "0200000000000000" "02000000" "6100" "00000000"),
    ],
)  # fmt: skip
def test_values_written_as_the_definition_says(kind, value, encoded):
    assert kind.encode(value).hex() == encoded


@pytest.mark.parametrize(
    ("kind", "value"), [(decimal(3, 2), Decimal("10")), (varchar(2), "abc"), (DataType(0x38, 4), None)]
)
def test_a_value_that_does_not_fit_is_refused(kind, value):
    with pytest.raises(ValueError):
        kind.encode(value)


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[tuple[int, bytes]], list[bytes]]:
    """Messages, and their packets cut anywhere."""
    messages = draw(
        st.lists(st.tuples(st.sampled_from([SQL_BATCH, RPC, BULK_LOAD]), st.binary(max_size=2000)), max_size=4)
    )
    stream = b"".join(frame(kind, body, draw(st.sampled_from([512, 513, 4096]))) for kind, body in messages)
    places = sorted(draw(st.lists(st.integers(0, len(stream)), max_size=10)))
    return messages, [
        stream[start:end] for start, end in zip([0, *places], [*places, len(stream)], strict=True) if end > start
    ]


@given(streams())
def test_messages_arrive_whole_however_they_are_cut(cut):
    messages, parts = cut
    assembler = Assembler()
    assert [(it.kind, it.body) for part in parts for it in assembler.feed(part)] == messages
    assert not assembler.in_a_message


@given(streams())
def test_swallowed_bodies_are_counted(cut):
    messages, parts = cut
    assembler = Assembler(swallowed_kind=BULK_LOAD)
    for message, (kind, body) in zip([it for part in parts for it in assembler.feed(part)], messages, strict=True):
        assert message.size == len(body)
        if kind != BULK_LOAD:
            assert message.body == body


@given(streams(), st.binary(min_size=1))
def test_what_follows_the_first_message_stays_behind(cut, following):
    messages, parts = cut
    assembler = Assembler()
    if messages:
        first = assembler.feed_one(b"".join(parts) + following)
        assert first and (first.kind, first.body) == messages[0]
        assert assembler.rest().endswith(following)


def test_a_message_the_client_gave_up_is_none():
    packet = bytearray(frame(SQL_BATCH, b"half", 4096))
    packet[1] |= IGNORE
    assembler = Assembler()
    assert assembler.feed(bytes(packet)) == []
    assert assembler.feed(frame(SQL_BATCH, b"whole", 4096))[0].body == b"whole"


def test_what_is_not_tds_is_malformed():
    with pytest.raises(Malformed):
        Assembler().feed(b"GET\0\0\0\0\0 / HTTP/1.1")
    with pytest.raises(Malformed):
        read_prelogin(b"\x00\x00")
    with pytest.raises(Malformed):
        read_requests(Message(RPC, 1, HEADERS + b"\x05\x00", 24), 1, 1)
    with pytest.raises(Malformed):
        read_login(b"\0" * 20)


@given(UNICODE)
def test_passwords_are_compared_and_never_shown(password):
    login = read_login(login_bytes(user="u", password=password, database="d", application="a"))
    assert (login.user, login.database, login.application, login.packet_size) == ("u", "d", "a", 8000)
    assert login.has_password(password) and not login.has_password(password + "x")
    assert "password" not in repr(login)


def test_prelogin_options_survive():
    options = {0: b"123456", 1: b"\2", 3: b""}
    assert read_prelogin(write_prelogin(options)) == options


@given(st.lists(st.tuples(NULLABLE, st.booleans(), st.booleans())))
def test_parameters_of_a_call(described):
    sent = [parameter(kind, None if null else value, "@p", out) for (kind, value), null, out in described]
    [request] = read_requests(rpc(call("[dbo].[p]", *sent)), 1, 1)
    assert request.called == ("dbo.p",)
    assert request.values == tuple(None if null else value for (_, value), null, _ in described)
    assert [it.output for it in request.parameters] == [out for _, _, out in described]


def test_the_statement_and_values_behind_sp_executesql():
    sent = [parameter(nvarchar(), "EXEC dbo.p @P1"), parameter(nvarchar(4000), "@P1 int"), parameter(INT, 5)]
    [request] = read_requests(rpc(call(10, *sent)), 1, 1)
    assert (request.procedure, request.text, request.values) == ("sp_executesql", "EXEC dbo.p @P1", (5,))
    assert request.called == ("dbo.p",)


def test_several_calls_in_one_message_are_one_round_trip():
    calls = read_requests(rpc(call("p", parameter(INT, 1)), call("p", parameter(INT, 2))), 3, 9)
    assert [(it.values, it.connection, it.trip) for it in calls] == [((1,), 3, 9), ((2,), 3, 9)]


def test_a_table_as_parameter():
    row = b"\x01" + INT.encode(1) + nvarchar(9).encode(None)
    columns = b"".join(struct.pack("<IH", 0, 1) + kind.info() + b"\0" for kind in (INT, nvarchar(9)))
    table = b"\0\0" + b"\xf3" + b"\0\0" + short_text("ids") + struct.pack("<H", 2) + columns + b"\0" + row * 2 + b"\0"
    [request] = read_requests(rpc(call("p", table, parameter(INT, 7))), 1, 1)
    assert request.values == ([(1, None), (1, None)], 7)


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


@given(st.lists(st.tuples(NULLABLE, st.booleans()), min_size=1, max_size=10), st.integers(0, 3))
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


def test_only_the_last_done_says_that_nothing_follows():
    [answer] = render([Count(1), Count(2)], Flow()).pieces
    assert answer == tokens.done(0xFD, 0x11, 1, tokens.UPDATE) + tokens.done(0xFD, 0x10, 2, tokens.UPDATE)


def test_a_call_ends_with_its_status_and_its_outputs():
    [answer] = render([Status(4), Output("@n", INT, 5)], Flow(in_procedure=True)).pieces
    assert answer == tokens.return_status(4) + tokens.return_value(0, "@n", INT, 5) + tokens.done(0xFE, 0)

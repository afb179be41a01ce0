"""A whole conversation with the responder, without a socket."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from support.tds import tokens
from support.tds.answers import Error, Rows
from support.tds.client import OPENING, batch
from support.tds.datatypes import INT
from support.tds.packets import ATTENTION, RESET_CONNECTION, frame
from support.tds.script import Script
from support.tds.session import Session, Shared
from support.tds.tokens import Column


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


def test_attention_is_always_acknowledged():
    wire, shared = converse([OPENING, frame(ATTENTION, b"", 4096)], Script())
    assert wire.sent.endswith(tokens.done(tokens.DONE, tokens.ATTENTION_BIT))
    assert shared.requests[0].kind == "attention"

"""One connection, without its socket: from the first byte to the last."""

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Protocol

from support.tds import tokens
from support.tds.answers import Cut, Flow, Hold, Piece, render
from support.tds.login import (
    ENCRYPT_NOT_SUPPORTED,
    ENCRYPT_ON,
    ENCRYPT_REQUIRED,
    ENCRYPTION_OPTION,
    UTF8_FEATURE,
    Login,
    answer_prelogin,
    read_login,
    read_prelogin,
)
from support.tds.packets import (
    ATTENTION,
    BULK_LOAD,
    LARGEST_PACKET,
    LOGIN7,
    PRELOGIN,
    REPLY,
    SMALLEST_PACKET,
    Assembler,
    Malformed,
    Message,
    frame,
)
from support.tds.requests import Request, bulk_table, read_bulk, read_requests, short_key
from support.tds.script import Script
from support.tds.tls import Tunnel

_BEGIN = re.compile(r"\bBEGIN\s+TRAN", re.I)
_COMMIT = re.compile(r"\bCOMMIT\b", re.I)
_ROLLBACK = re.compile(r"\bROLLBACK\b", re.I)
_PREPARING = ("sp_prepare", "sp_prepexec", "sp_prepexecrpc")
_TEXT_BEHIND = ("sp_executesql", "sp_prepexec", "sp_execute")
MOST_CANNED = 10_000


class Transport(Protocol):
    def write(self, data: bytes) -> None: ...
    def close(self, reset: bool) -> None: ...
    def from_elsewhere(self, go_on: Callable[[], None]) -> None:
        """From any thread: runs it in the loop's."""


class Shared:
    """State that the sessions of one responder have in common."""

    def __init__(self, script: Script, encryption: str, record: bool):
        self.script = script
        self.encryption = encryption
        self.record = record
        self.requests: list[Request] = []
        self.logins: list[Login] = []
        self.statements: dict[str, int] = {}
        """Handles of prepared statements. One for each text, whoever prepared it: answers stay constant."""
        self.texts: dict[int, str] = {}
        self.canned: dict[tuple[bool, bytes], tuple[bytes, bool]] = {}

    def handle(self, text: str) -> int:
        handle = self.statements.setdefault(text, len(self.statements) + 1)
        self.texts[handle] = text
        return handle


class Session:
    def __init__(self, shared: Shared, transport: Transport):
        self._shared = shared
        self._transport = transport
        self._assembler = Assembler(swallowed_kind=None if shared.record else BULK_LOAD)
        self._tunnel: Tunnel | None = None
        self._shaking_hands = False
        self._login: Login | None = None
        self._number = 0
        self._trip = 0
        self._packet_size = 4096
        self._database = ""
        self._in_transaction = False
        self._bulk_table = ""
        self._answer = 0  # the number of the answer that may still be written
        self._unsent: list[Piece] = []
        self._began_answer = False

    def receive(self, data: bytes) -> None:
        """Bytes from the client. Raises Malformed and ssl.SSLError."""
        if self._shaking_hands:
            data = self._shake_hands(data)
        elif self._tunnel:
            data = self._tunnel.decrypt(data)
        if not data:
            return
        for message in self._assembler.feed(data):
            if self._login:
                self._respond(message)
            else:
                self._introduce(message)
        if self._bulk_table and self._breaks_off():
            self._transport.close(reset=True)

    # Login

    def _introduce(self, message: Message) -> None:
        if message.kind == PRELOGIN:
            asked = read_prelogin(message.body)
            encryption = self._agree(asked.get(ENCRYPTION_OPTION, b"\0")[0])
            self._transport.write(frame(REPLY, answer_prelogin(asked, encryption), self._packet_size))
            if encryption != ENCRYPT_NOT_SUPPORTED:
                self._tunnel = Tunnel()
                self._shaking_hands = True
        elif message.kind == LOGIN7:
            self._log_in(read_login(message.body))
        else:
            raise Malformed(f"message of kind {message.kind} before the login")

    def _agree(self, wish: int) -> int:
        if self._shared.encryption == "required":
            return ENCRYPT_ON if wish == ENCRYPT_ON else ENCRYPT_REQUIRED
        if wish in (ENCRYPT_ON, ENCRYPT_REQUIRED) and self._shared.encryption != "never":
            return ENCRYPT_ON
        return ENCRYPT_NOT_SUPPORTED

    def _shake_hands(self, data: bytes) -> bytes:
        """TLS inside PRELOGIN packets. Gives what came behind it, decrypted."""
        assert self._tunnel
        message = self._assembler.feed_one(data)
        while message:
            if answer := self._tunnel.handshake(message.body):
                self._transport.write(frame(PRELOGIN, answer, self._packet_size))
            if self._tunnel.ready:
                self._shaking_hands = False
                rest = self._assembler.rest()
                return self._tunnel.decrypt(rest) if rest else b""
            message = self._assembler.feed_one(b"")
        return b""

    def _log_in(self, login: Login) -> None:
        self._shared.logins.append(dataclasses.replace(login, encrypted=self._tunnel is not None))
        if refusal := self._shared.script.refusal(login):
            self._send([*render(refusal, Flow()).pieces, Cut(reset=False)])
            return
        self._login = login
        self._number = len(self._shared.logins)
        self._database = login.database or "master"
        size = login.packet_size or self._packet_size
        features = {UTF8_FEATURE: b"\x01"} if UTF8_FEATURE in login.features else {}
        packet_size = min(max(size, SMALLEST_PACKET), LARGEST_PACKET)
        self._write(tokens.logged_in(self._database, packet_size, features))
        self._packet_size = packet_size

    # Requests

    def _respond(self, message: Message) -> None:
        if message.kind == ATTENTION:
            self._give_up()
            return
        self._trip += 1
        if message.kind == BULK_LOAD:
            self._load(message)
            return
        key = None
        if not self._shared.record and not message.status & 0x18:
            key = short_key(message)
            canned = self._shared.canned.get((self._in_transaction, key)) if key else None
            if canned:
                data, self._in_transaction = canned
                self._write(data)
                return
        before = self._in_transaction
        requests = read_requests(message, self._number, self._trip)
        pieces: list[Piece] = []
        constant = key is not None and len(requests) == 1
        for place, request in enumerate(requests, 1):
            rendered, is_constant = self._answer_to(request, more=place < len(requests))
            pieces += rendered
            constant = constant and is_constant
        if constant and len(pieces) == 1:
            assert key and isinstance(pieces[0], bytes)
            if len(self._shared.canned) >= MOST_CANNED:
                self._shared.canned.clear()  # texts with values in them: each comes once
            self._shared.canned[before, key] = (pieces[0], self._in_transaction)
        self._send(pieces)

    def _answer_to(self, request: Request, more: bool = False) -> tuple[list[Piece], bool]:
        """The answer, and whether it is always the same."""
        if request.procedure == "sp_execute" and request.parameters:
            request.text = self._shared.texts.get(request.parameters[0].value, "")
        if self._shared.record:
            self._shared.requests.append(request)
        self._bulk_table = bulk_table(request.text) or ""
        flow = self._flow(request)
        if request.procedure in ("sp_unprepare", "sp_prepare"):
            return render([], flow, more).pieces, True
        rule = self._shared.script.rule_for(request)
        rendered = rule.rendered.get((flow, more))
        if rendered is None:
            rendered = render(rule.steps(request), flow, more)
            if rule.is_constant:
                rule.rendered[flow, more] = rendered
        self._in_transaction = rendered.in_transaction
        return rendered.pieces, rule.is_constant

    def _flow(self, request: Request) -> Flow:
        begins, ends = _transaction_verbs(request.text)
        called = bool(request.called)
        return Flow(
            in_procedure=request.kind == "rpc" or called,
            is_prepared=request.procedure in _TEXT_BEHIND,
            more_after=request.kind == "batch" and called and ends is not None,
            in_transaction=self._in_transaction,
            begins=begins,
            ends=ends,
            resets=request.resets,
            handle=self._shared.handle(request.text) if request.procedure in _PREPARING else None,
            database=self._database,
        )

    def _load(self, message: Message) -> None:
        request = Request("bulk", self._number, self._trip, table=self._bulk_table, size=message.size)
        if self._shared.record:
            request.columns, request.rows = read_bulk(message.body)
            self._shared.requests.append(request)
        rule = self._shared.script.rule_for(request)
        self._send(render(rule.steps(request), Flow(in_transaction=self._in_transaction)).pieces)

    def _breaks_off(self) -> bool:
        """Return True if the script cuts the load that is arriving, and now."""
        if not self._bulk_table or not self._assembler.in_a_message:
            return False
        rule = self._shared.script.rule_for(Request("bulk", self._number, table=self._bulk_table))
        if rule.after_bytes is None or self._assembler.size < rule.after_bytes:
            return False
        rule.spend()
        return True

    def _give_up(self) -> None:
        """The client's attention: whatever was being answered ends here."""
        self._trip += 1
        if self._shared.record:
            self._shared.requests.append(Request("attention", self._number, self._trip))
        aborted = b""
        if self._unsent and not self._began_answer:
            # The driver reports a cancelled call only if the call's own end, a failure, comes first.
            aborted = tokens.done(tokens.DONE, tokens.ERROR_BIT | tokens.MORE)
        self._answer += 1
        self._unsent = []
        self._write(aborted + tokens.done(tokens.DONE, tokens.ATTENTION_BIT))

    # Answers

    def _send(self, pieces: list[Piece]) -> None:
        if len(pieces) == 1 and isinstance(pieces[0], bytes):
            self._write(pieces[0])
            return
        self._answer += 1
        self._unsent = list(pieces)
        self._began_answer = False
        self._go_on(self._answer)

    def _go_on(self, answer: int) -> None:
        """Sends up to the next pause, unless the client has given up this answer."""
        if answer != self._answer:
            return
        body = b""
        while self._unsent:
            piece = self._unsent.pop(0)
            if isinstance(piece, bytes):
                body += piece
                continue
            if isinstance(piece, Cut):
                self._cut(piece, body)
                return
            if body:
                self._began_answer = True
                self._write(body, finished=False)
            self._hold(piece, answer)
            return
        self._write(body)

    def _hold(self, hold: Hold, answer: int) -> None:
        go_on = functools.partial(self._transport.from_elsewhere, functools.partial(self._go_on, answer))
        hold.on_release(go_on)
        hold.reached.set()

    def _cut(self, cut: Cut, body: bytes) -> None:
        if body:
            finished = not any(isinstance(piece, bytes) for piece in self._unsent)
            self._write(body, finished=finished)
        self._transport.close(cut.reset)

    def _write(self, body: bytes, finished: bool = True) -> None:
        self._transport.write(self._sealed(frame(REPLY, body, self._packet_size, finished=finished)))

    def _sealed(self, data: bytes) -> bytes:
        return self._tunnel.encrypt(data) if self._tunnel and data else data


@functools.lru_cache(maxsize=1000)
def _transaction_verbs(text: str) -> tuple[bool, int | None]:
    """Tell whether a text begins a transaction, and how it ends one."""
    if not text:
        return False, None
    ends = tokens.COMMITTED if _COMMIT.search(text) else tokens.ROLLED_BACK if _ROLLBACK.search(text) else None
    return bool(_BEGIN.search(text)), ends

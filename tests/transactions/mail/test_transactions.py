"""Each transaction does what it says to its message, and nothing else is wrong afterwards."""

import hashlib
import random
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.injected import Injected, check, condition_keys

from stallmark.engines.base import Engine, Session
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
from stallmark.errors import CallFailed
from stallmark.loaders.mail import LOADER
from stallmark.schema.mail import LEAST_BYTES, MEAN_BYTES, MOST_BYTES
from stallmark.transactions.mail import (
    CHUNK_BYTES,
    MAILBOXES_PER_USER,
    WORKLOAD,
    BackgroundScan,
    DeleteMessage,
    DeliverMessage,
    Delivery,
    ListFolder,
    MoveMessage,
    ReadMessage,
    ScanPosition,
    UpdateMessage,
)
from stallmark.transactions.workload import Outcome

FIRST, LAST = 0, 999_999
MAILBOX = 2


def mailbox(mail: Engine, columns: str) -> tuple:
    [row] = mail.query(f"SELECT {columns} FROM mail.mailbox WHERE mb_id = {MAILBOX}")
    return row


def messages(mail: Engine, columns: str = "me_id") -> list[tuple]:
    return mail.query(f"SELECT {columns} FROM mail.message WHERE me_mb_id = {MAILBOX} ORDER BY me_id")


def folders(mail: Engine) -> dict[int, tuple[int, int, int]]:
    found = mail.query(
        f"SELECT fo_id, fo_messages, fo_unread, fo_bytes FROM mail.folder WHERE fo_mb_id = {MAILBOX} ORDER BY fo_id"
    )
    return {number: (messages, unread, size) for number, messages, unread, size in found}


def test_a_message_is_delivered(mail: Engine, session: Session, context, broken) -> None:
    before = folders(mail)[1]
    delivered = Delivery(MAILBOX, 1, "smith@example.com", "Hello.", "x" * 20_000 + ".")
    assert DeliverMessage(context).execute(session, delivered) is Outcome.COMMITTED
    assert mailbox(mail, "mb_first, mb_next, mb_messages") == (1, 22, 21)
    found = messages(mail, "me_id, me_fo_id, me_sender, me_subject, CAST(me_read AS integer), me_bytes")[-1]
    assert found == (21, 1, "smith@example.com", "Hello.", 0, 20_001)
    [(body, moment)] = mail.query(
        "SELECT bo_text, CAST(me_received AS date) FROM mail.body JOIN mail.message ON me_mb_id = bo_mb_id "
        f"AND me_id = bo_me_id WHERE bo_mb_id = {MAILBOX} AND bo_me_id = 21"
    )
    assert body == delivered.body and str(moment) == "2026-11-23"
    assert folders(mail)[1] == (before[0] + 1, before[1] + 1, before[2] + 20_001)
    assert broken() == []


@pytest.mark.parametrize(("place", "number"), [(FIRST, 1), (LAST, 20), (50_000, 2), (99_999, 2), (500_000, 11)])
def test_places_are_those_of_the_messages(session: Session, place: int, number: int) -> None:
    [(found, *_)] = session.call("read_message", (MAILBOX, place))
    assert found == number


def test_a_message_is_read_with_its_body(mail: Engine, session: Session, context) -> None:
    assert ReadMessage(context).execute(session, (MAILBOX, LAST)) is Outcome.COMMITTED
    [(_, folder, _, sender, subject, read, size, body)] = session.call("read_message", (MAILBOX, LAST))
    asked = "me_fo_id, me_sender, me_subject, CAST(me_read AS integer), me_bytes"
    assert (folder, sender, subject, int(read), size) == messages(mail, asked)[-1]
    assert len(body) == size and body.endswith(".")


def test_what_is_gone_or_cut_is_no_read(mail: Engine, session: Session, context) -> None:
    mail.execute(f"UPDATE mail.body SET bo_text = '.' WHERE bo_mb_id = {MAILBOX} AND bo_me_id = 1")
    with pytest.raises(CallFailed, match=r"message 1 of mailbox 2 has 1 bytes of its [\d,]+: run `stallmark check`"):
        ReadMessage(context).execute(session, (MAILBOX, FIRST))
    mail.execute(f"DELETE FROM mail.body WHERE bo_mb_id = {MAILBOX}")
    with pytest.raises(CallFailed, match="mailbox 2 has no message: run `stallmark check`"):
        ReadMessage(context).execute(session, (MAILBOX, FIRST))


def test_one_that_is_deleted_meanwhile_is_asked_for_again(context) -> None:
    class Meanwhile:
        calls = 0

        def call(self, *_: object, commits: bool) -> list[tuple]:
            self.calls += 1
            return [] if self.calls < 3 else [(1, "four", 4, "text")]

    session = Meanwhile()
    assert ReadMessage(context).execute(session, (1, 1)) is Outcome.COMMITTED  # type: ignore[arg-type]
    assert session.calls == 3


def test_marking_twice_undoes_itself(mail: Engine, session: Session, context, broken) -> None:
    update, before, read = UpdateMessage(context), folders(mail), messages(mail, "me_read")
    update.execute(session, (MAILBOX, 500_000, None))
    now = messages(mail, "me_read")
    assert [place for place in range(20) if now[place] != read[place]] == [10]
    assert folders(mail) != before and broken() == []
    update.execute(session, (MAILBOX, 500_000, None))
    assert (folders(mail), messages(mail, "me_read")) == (before, read)
    assert mailbox(mail, "mb_updates") == (2,)


@pytest.mark.parametrize("size", [1, 3_000, 300_000])
def test_a_body_is_replaced(mail: Engine, session: Session, context, broken, size: int) -> None:
    UpdateMessage(context).execute(session, (MAILBOX, LAST, "y" * (size - 1) + "."))
    assert messages(mail, "me_bytes")[-1] == (size,)
    [(*_, found, body)] = session.call("read_message", (MAILBOX, LAST))
    assert (found, body) == (size, "y" * (size - 1) + ".")
    assert mailbox(mail, "mb_updates") == (1,) and broken() == []


def test_a_message_moves_to_another_folder(mail: Engine, session: Session, context, broken) -> None:
    move = MoveMessage(context)
    for folder in (7, 7, 8, 10, 10):  # twice into the one where it lies
        move.execute(session, (MAILBOX, FIRST, folder))
        assert broken() == []
    assert messages(mail, "me_fo_id")[0] == (1,)  # after the last folder comes the first
    assert mailbox(mail, "mb_moves, mb_messages") == (5, 20)


def test_a_folder_shows_its_newest_messages(mail: Engine, session: Session, context) -> None:
    asked = "me_id, me_sender, me_subject, CAST(me_read AS integer), me_bytes"
    lying = [row for folder, *row in messages(mail, f"me_fo_id, {asked}") if folder == 1]
    assert ListFolder(context).execute(session, (MAILBOX, 1)) is Outcome.COMMITTED
    for most in (3, 50):
        found = session.call("list_folder", (MAILBOX, 1, most))
        shown = [[number, sender, subject, int(read), size] for number, _, sender, subject, read, size in found]
        assert shown == lying[::-1][:most]


def test_a_message_is_deleted(mail: Engine, session: Session, context, broken) -> None:
    delete = DeleteMessage(context)
    assert delete.execute(session, (MAILBOX, FIRST)) is Outcome.COMMITTED
    assert delete.execute(session, (MAILBOX, LAST)) is Outcome.COMMITTED
    assert [number for (number,) in messages(mail)] == list(range(2, 20))
    assert mailbox(mail, "mb_first, mb_next, mb_messages, mb_deletes") == (2, 21, 18, 2)
    assert broken() == []
    [(found, *_)] = session.call("read_message", (MAILBOX, LAST))
    assert found == 19  # the numbers behind it are nobody's


def test_a_mailbox_keeps_its_size(mail: Engine, session: Session, context, broken) -> None:
    """It has 20 messages, and may have 18 to 22."""
    delete, deliver, rng = DeleteMessage(context), DeliverMessage(context), random.Random(3)
    done = [delete.execute(session, (MAILBOX, rng.randrange(LAST))) for _ in range(4)]
    assert done == [Outcome.COMMITTED] * 2 + [Outcome.ROLLED_BACK] * 2
    assert mailbox(mail, "mb_messages, mb_deletes") == (18, 2) and broken() == []
    for _ in range(6):
        deliver.execute(session, deliver.inputs(rng)._replace(mailbox=MAILBOX))
    assert mailbox(mail, "mb_messages") == (24,)
    for left in (22, 21):  # two go while it is too full
        assert delete.execute(session, (MAILBOX, LAST)) is Outcome.COMMITTED
        assert mailbox(mail, "mb_messages") == (left,)
    assert broken() == []


def test_the_scan_reads_every_body_whole_and_begins_again(mail: Engine, session: Session, context) -> None:
    context = replace(context, scan=ScanPosition(1))
    scan, read = BackgroundScan(context), 0
    bodies = dict(mail.query("SELECT me_mb_id, SUM(CAST(me_bytes AS bigint)) FROM mail.message GROUP BY me_mb_id"))
    turns = 0
    while context.scan.mailbox == 1:
        before = context.scan.message
        scan.execute(session, scan.inputs(random.Random()))
        turns += 1
        if context.scan.mailbox == 1:
            sizes = mail.query(
                "SELECT SUM(me_bytes) FROM mail.message WHERE me_mb_id = 1 "
                f"AND me_id BETWEEN {before} AND {context.scan.message - 1}"
            )
            read += int(sizes[0][0])
    assert read == bodies[1]
    assert read <= turns * CHUNK_BYTES + context.scan.ahead  # never more than its rate and what is ahead of it
    context.scan.mailbox, context.scan.message = 3, 21
    scan.execute(session, ())
    assert (context.scan.mailbox, context.scan.message) == (1, 1)


def test_the_scan_makes_a_checksum_of_the_bodies(mail: Engine, session: Session) -> None:
    [(last, size, checksum)] = session.call("background_scan", (1, 4, 10**9))
    bodies = mail.query("SELECT bo_text FROM mail.body WHERE bo_mb_id = 1 AND bo_me_id >= 4")
    digests = [int(hashlib.md5(body.encode()).hexdigest()[:8], 16) for (body,) in bodies]
    assert (last, size, checksum) == (20, sum(len(body) for (body,) in bodies), sum(digests))
    [(last, _, _)] = session.call("background_scan", (1, 4, 1))
    assert last == 4
    assert list(session.call("background_scan", (1, 21, 1))) == [(None, None, None)]


# Inputs are a function of the generator, name what exists, and have the shares and sizes that are intended


@given(seed=st.integers())
def test_inputs_are_a_function_of_the_generator(context, seed: int) -> None:
    for kind in WORKLOAD.users.deck:
        one, two = kind(context), kind(context)
        a, b = random.Random(seed), random.Random(seed)
        assert [one.inputs(a) for _ in range(5)] == [two.inputs(b) for _ in range(5)]


@given(seed=st.integers())
def test_inputs_name_what_exists(context, seed: int) -> None:
    rng = random.Random(seed)
    for kind in WORKLOAD.users.deck:
        inputs = kind(context).inputs(rng)
        assert inputs.mailbox in context.mailboxes
        assert 0 <= getattr(inputs, "place", 0) < 1_000_000
        assert 1 <= getattr(inputs, "folder", 1) <= 10
        if body := getattr(inputs, "body", None):
            assert LEAST_BYTES <= len(body) <= MOST_BYTES and body.endswith(".") and body.isascii()


def test_sizes_and_shares(context, rng: random.Random) -> None:
    deliver, update = DeliverMessage(context), UpdateMessage(context)
    delivered = [deliver.inputs(rng) for _ in range(4_000)]
    sizes = [len(each.body) for each in delivered]
    assert sum(sizes) / len(sizes) == pytest.approx(MEAN_BYTES, rel=0.3)  # of such sizes even thousands scatter
    assert sorted(sizes)[2_000] == pytest.approx(8_000, rel=0.15)
    folders = Counter(each.folder for each in delivered)
    assert folders.keys() == {1, 2} and folders[2] / 4_000 == pytest.approx(0.2, abs=0.03)
    with_body = sum(update.inputs(rng).body is not None for _ in range(4_000))
    assert with_body / 4_000 == pytest.approx(0.2, abs=0.03)


def test_hardly_two_bodies_are_alike(context, rng: random.Random) -> None:
    deliver = DeliverMessage(context)
    begins = Counter(deliver.inputs(rng).body[:99] for _ in range(2_000))
    assert max(begins.values()) <= 3


def test_too_few_mailboxes_are_advised_against() -> None:
    scale = {"mailboxes": 100}
    assert WORKLOAD.users.contention(scale, 100 // MAILBOXES_PER_USER) is None
    said = WORKLOAD.users.contention(scale, 11)
    assert said == (
        "11 users share 100 mailboxes, whose rows are locked by each change: they wait for each other and not for "
        "storage alone; use at least 110 mailboxes."
    )


# The conditions hold for what is loaded, and each finds what it is there for


SCALE = LOADER.scale({"mailboxes": 3, "messages": 20})
FILES = condition_keys(WORKLOAD)
_FOLDER = "WHERE fo_mb_id = 2 AND fo_id = 1"
_MESSAGE = "WHERE me_mb_id = 2 AND me_id = 7"
_BODY = "WHERE bo_mb_id = 2 AND bo_me_id = 7"

# What is wrong, how it comes to be so, and the condition that must find it. No foreign key is in force.
INJECTIONS = [
    ("a message too many", f"UPDATE mail.folder SET fo_messages = fo_messages + 1 {_FOLDER}", "folder_totals"),
    ("an unread one too many", f"UPDATE mail.folder SET fo_unread = fo_messages {_FOLDER}", "folder_totals"),
    ("a byte too many", f"UPDATE mail.folder SET fo_bytes = fo_bytes + 1 {_FOLDER}", "folder_totals"),
    ("a message in no folder", f"UPDATE mail.message SET me_fo_id = 11 {_MESSAGE}", "folder_totals"),
    ("a folder lost", f"DELETE FROM mail.folder {_FOLDER}", "folder_totals"),
    ("a message lost", f"DELETE FROM mail.message {_MESSAGE}", "mailbox_totals"),
    ("another oldest message", "UPDATE mail.mailbox SET mb_first = 2 WHERE mb_id = 2", "mailbox_totals"),
    ("a number twice", "UPDATE mail.mailbox SET mb_next = 20 WHERE mb_id = 2", "mailbox_totals"),
    ("a mailbox lost", "DELETE FROM mail.mailbox WHERE mb_id = 2", "mailbox_totals"),
    ("a body lost", f"DELETE FROM mail.body {_BODY}", "bodies"),
    ("a body of no message", "INSERT INTO mail.body VALUES (2, 21, '.')", "bodies"),
    ("a body cut off", f"UPDATE mail.body SET bo_text = LEFT(bo_text, -1) {_BODY}", "bodies"),
    ("a body with more", f"UPDATE mail.body SET bo_text = bo_text || ' ' {_BODY}", "bodies"),
    ("a delivery lost", "UPDATE mail.mailbox SET mb_next = mb_next + 1 WHERE mb_id = 2", "deliveries"),
    ("a delete too many", "UPDATE mail.mailbox SET mb_deletes = 1 WHERE mb_id = 2", "deliveries"),
    ("other limits", "UPDATE mail.mailbox SET mb_most = 99 WHERE mb_id = 2", "deliveries"),
    ("a folder too many", "INSERT INTO mail.folder VALUES (2, 11, 'Other', 0, 0, 0)", "rows"),
    ("a mailbox too many", "INSERT INTO mail.mailbox VALUES (4, 'x', 1, 21, 20, 18, 22, 0, 0, 0)", "rows"),
    ("a folder under another name", f"UPDATE mail.folder SET fo_name = 'Inbux' {_FOLDER}", "folders"),
    ("something done", "UPDATE mail.mailbox SET mb_moves = 1 WHERE mb_id = 2", "loaded"),
    ("bodies of another size", "UPDATE mail.folder SET fo_bytes = 100 * fo_bytes", "body_sizes"),
]  # fmt: skip


def test_a_loaded_database_holds(mail: Engine) -> None:
    findings = check(mail, WORKLOAD, SCALE)
    assert len(findings) == len(WORKLOAD.conditions)
    assert [finding for finding in findings.values() if not finding.holds] == []


@pytest.mark.parametrize(("wrong", "finds"), [(w, f) for _, w, f in INJECTIONS], ids=[what for what, *_ in INJECTIONS])
def test_what_is_wrong_is_found(mail: Engine, wrong: str, finds: str) -> None:
    if not isinstance(mail, EmbeddedEngine):
        pytest.skip("A fault is injected in a transaction that is rolled back; here each connection commits by itself.")
    [(database,)] = mail.query("SELECT current_database()")
    found = check(Injected(mail, database, f"SET session_replication_role = replica; {wrong}"), WORKLOAD, SCALE)
    assert found[finds].holds is False


def test_every_condition_has_something_to_find() -> None:
    assert {finds for *_, finds in INJECTIONS} == set(FILES.values())

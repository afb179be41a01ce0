"""The conditions hold for what is loaded, and each finds what it is there for."""

import pytest
from support.injected import Injected, check, condition_files

from stallmark.engines.base import Engine
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.loaders.mail import LOADER
from stallmark.transactions.mail import WORKLOAD

SCALE = LOADER.scale({"mailboxes": 3, "messages": 20})
FILES = condition_files(WORKLOAD)
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

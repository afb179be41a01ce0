"""Maintenance beside users: the statements of a backup, a check and a rebuild, cut at the end, and who may."""

import threading

import pytest
from support.mssql_server import AZURE_DATABASE, MANAGED_INSTANCE, STANDARD, rows
from support.tds.answers import Count, Hold

from stallmark.errors import CallFailed


@pytest.mark.parametrize(
    ("kind", "what", "says", "statement"),
    [
        ("backup", "NUL", {}, "BACKUP DATABASE [bank] TO DISK = N'NUL' WITH COPY_ONLY, INIT"),
        ("check", "", {}, "DBCC CHECKDB WITH NO_INFOMSGS"),
        ("rebuild", "bank.accounts", {}, "ALTER INDEX ALL ON [bank].[accounts] REBUILD WITH (ONLINE = ON)"),
        # Online index operations are of Enterprise ("Editions and supported features of SQL Server").
        ("rebuild", "bank.accounts", {"edition": STANDARD}, "REBUILD WITH (ONLINE = OFF)"),
    ],
)
def test_each_is_one_statement(new_server, kind, what, says, statement):
    server = new_server(**says)
    server.script.sql("BACKUP DATABASE|DBCC|ALTER INDEX", Count(0))
    work = server.engine().maintenance[kind].open(what)
    work.execute()
    work.close()
    [asked] = server.asked(statement)
    assert asked.endswith(statement)


def test_what_is_under_way_at_the_end_is_given_up(new_server):
    server = new_server()
    server.script.sql("DBCC", Hold())
    work = server.engine().maintenance["check"].open("")
    failed: list[CallFailed] = []

    def execute() -> None:
        try:
            work.execute()
        except CallFailed as error:
            failed.append(error)

    thread = threading.Thread(target=execute)
    thread.start()
    while thread.is_alive():
        work.cancel()
        thread.join(0.05)
    assert len(failed) == 1
    work.close()


@pytest.mark.parametrize(
    ("says", "rights", "refused"),
    [
        ({}, (1, 1), set()),
        ({}, (0, 1), {"backup"}),
        ({}, (1, 0), {"check", "rebuild"}),
        ({"edition": MANAGED_INSTANCE, "version": "12.0.2000.8"}, (1, 1), {"backup"}),
        ({"edition": AZURE_DATABASE, "version": "12.0.2000.8"}, (1, 1), {"backup"}),
    ],
)
def test_who_may_do_what(new_server, says, rights, refused):
    server = new_server(**says)
    server.script.sql("HAS_PERMS_BY_NAME", rows(["backup", "owner"], rights))
    every = server.engine().maintenance
    assert {kind for kind, ability in every.items() if ability.refusal()} == refused

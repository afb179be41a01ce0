"""The copy that every run starts from, and a restore that was cut."""

import json
import re
from datetime import datetime

import pytest
from click.testing import CliRunner, Result
from support.mssql_server import AZURE_DATABASE
from support.tds.answers import Count, Error, Rows
from support.tds.datatypes import BIGINT, INT, datetime2, nvarchar
from support.tds.responder import Responder
from support.tds.script import Rule, Script
from support.tds.tokens import Column

from stallmark.cli.main import main
from stallmark.engines.abilities import BackupOptions
from stallmark.engines.mssql.backup import MssqlBackup
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import CallFailed, StallmarkError, in_words

from .conftest import LOCK

pytestmark = pytest.mark.thorough


def test_a_backup_says_what_it_is_of(engine, server, script):
    label = '{"workload": "bank", "note": "' + "it's long " * 30 + '"}'
    script.sql("BACKUP DATABASE", Count(0))
    engine.backup.keep(label)
    taken = server.requests[-1].text
    described = re.search(r" DESCRIPTION = N'((?:[^']|'')*)', MEDIADESCRIPTION = N'((?:[^']|'')*)'", taken)
    first, second = (part.replace("''", "'") for part in described.groups())
    assert first + second == label and len(first) == 255
    text = nvarchar(255)
    script.sql(
        "RESTORE HEADERONLY", Rows([Column("BackupDescription", text), Column("DatabaseName", text)], [(first, "bank")])
    )
    script.sql("RESTORE LABELONLY", Rows([Column("MediaDescription", text)], [(second,)]))
    script.sql(r"SELECT DB_NAME\(\)", Rows([Column("name", text)], [("bank",)]))
    assert engine.backup.label() == label


def test_capitals_of_the_url_are_of_no_meaning_where_the_server_has_none(engine, script):
    text = nvarchar(255)
    columns = [Column("BackupDescription", text), Column("DatabaseName", text)]
    script.sql("RESTORE HEADERONLY", Rows(columns, [("as loaded", "Bank")]))
    script.sql("RESTORE LABELONLY", Rows([Column("MediaDescription", text)], [("-",)]))
    script.sql(r"SELECT DB_NAME\(\)", Rows([Column("name", text)], [("Bank",)]), times=1)
    assert engine.backup.label() == "as loaded"
    script.sql(r"SELECT DB_NAME\(\)", Rows([Column("name", text)], [("bank",)]))
    assert engine.backup.label() is None  # of another one, where capitals count


def test_without_a_backup_there_is_none(engine, script):
    script.sql("RESTORE HEADERONLY", Error(3201, "Cannot open backup device.", severity=16))
    assert engine.backup.label() is None


def test_a_backup_that_this_login_may_not_read_is_not_taken_for_none(engine, script):
    script.sql("RESTORE HEADERONLY", Error(3110, "User does not have permission to RESTORE.", severity=14))
    with pytest.raises(CallFailed, match="permission"):
        engine.backup.label()


def has_copies(script: Script, grouped: int, mirrored: int) -> None:
    columns = [Column(name, INT) for name in ("in an availability group", "mirrored")]
    script.sql("sys.database_mirroring", Rows(columns, [(grouped, mirrored)]))


@pytest.mark.parametrize(
    ("grouped", "mirrored", "why"), [(1, 0, "in an availability group, where"), (0, 1, "mirrored, where"), (0, 0, None)]
)
def test_a_database_with_copies_elsewhere_is_not_restored(engine, script, grouped, mirrored, why):
    """Error 3104: RESTORE cannot operate on a database that is mirrored or has joined an availability group."""
    has_copies(script, grouped, mirrored)
    script.sql("'BACKUP DATABASE'", Rows([Column("the right", INT)], [(1,)]))
    refusal = engine.backup.refusal()
    assert (refusal is None) == (why is None) and (why or "") in (refusal or "")


@pytest.mark.parametrize(
    ("options", "disks", "written", "read"),
    [
        (BackupOptions(), ["stallmark-bank.bak"], "", ""),
        (
            BackupOptions("B:\\bak\\", 2, "on", 50, 4 << 20),
            [r"B:\bak\stallmark-bank-1of2.bak", r"B:\bak\stallmark-bank-2of2.bak"],
            ", COMPRESSION, BUFFERCOUNT = 50, MAXTRANSFERSIZE = 4194304",
            ", BUFFERCOUNT = 50, MAXTRANSFERSIZE = 4194304",
        ),
        (BackupOptions("/bak", compression="off"), ["/bak/stallmark-bank.bak"], ", NO_COMPRESSION", ""),
        (
            BackupOptions("/bak", compression="zstd"),
            ["/bak/stallmark-bank.bak"],
            ", COMPRESSION (ALGORITHM = ZSTD)",
            "",
        ),
    ],
)
def test_a_backup_lies_and_is_written_as_the_scenario_says(engine, server, script, bank, options, disks, written, read):
    script.sql("BACKUP DATABASE", Count(0))
    engine.backup.options = options
    engine.backup.keep("label")
    where = ", ".join(f"DISK = N'{disk}'" for disk in disks)
    kept = server.requests[-1].text
    assert kept.startswith(f"BACKUP DATABASE [bank] TO {where} WITH") and kept.endswith(f"CHECKSUM{written}")
    engine.backup.restore()
    [restored] = [text for text in restores(server) if text.startswith("RESTORE DATABASE")]
    assert restored == f"RESTORE DATABASE [bank] FROM {where} WITH REPLACE, RECOVERY, CHECKSUM{read}"


@pytest.mark.parametrize(
    ("database", "file"),
    [("my bank.2", "stallmark-my bank.2.bak"), ("Größe", "stallmark-Größe.bak"), ("a's", "stallmark-a''s.bak"),
     ("Acme/Orders", "stallmark-Acme%2FOrders.bak"), ("a:b", "stallmark-a%3Ab.bak"), ("a\\b", "stallmark-a%5Cb.bak"),
     ("../../x", "stallmark-..%2F..%2Fx.bak"), ("100%", "stallmark-100%25.bak")],
)  # fmt: skip
def test_a_backup_is_in_its_folder_whatever_the_database_is_called(engine, server, script, database, file):
    script.databases = None
    script.sql("BACKUP DATABASE", Count(0))
    backup = engine.on_database(database).backup
    assert isinstance(backup, MssqlBackup)
    backup.options = BackupOptions("/bak")
    backup.keep("label")
    assert server.requests[-1].text.startswith(f"BACKUP DATABASE [{database}] TO DISK = N'/bak/{file}' WITH")


# What is left


MADE = datetime(2026, 11, 23, 8, 30)
PATHS = ["/bak/stallmark-bank.bak", "/bak/stallmark-other.bak", "/bak/stallmark-gone.bak"]


@pytest.fixture
def left(script: Script) -> set[str]:
    """The files that are on the server; msdb notes one more."""
    there = set(PATHS[:2])
    columns = [Column("database_name", nvarchar(128)), Column("path", nvarchar(260))]
    columns += [Column("finished", datetime2(3)), Column("bytes", BIGINT)]
    script.sql("msdb.dbo.backupset", Rows(columns, [(path[15:-4], path, MADE, 5 << 20) for path in PATHS]))

    def look(request) -> list:
        missing = request.text.split("'")[1] not in there
        return [Error(3201, "Cannot open backup device.")] if missing else [Rows([Column("x", INT)], [(1,)])]

    def delete(request) -> list:
        there.discard(request.text.split("'")[1])
        return []

    script.sql("RESTORE LABELONLY", look)
    script.sql("xp_delete_file", delete)
    return there


def copies(engine: MssqlEngine, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["copies", *arguments], env={"STALLMARK_SERVER": engine.spec()})


def test_copies_that_are_left_are_listed_and_those_of_the_database_removed(engine, left):
    listed = copies(engine)
    assert listed.exit_code == 0, listed.output
    assert [line.split(", ")[0] for line in listed.stdout.splitlines()] == [f"{p[15:-4]}  {p}" for p in PATHS[:2]]
    removed = json.loads(copies(engine, "--remove", "--json").stdout)
    assert [(one["database"], one["bytes"], one["removed"]) for one in removed] == [
        ("bank", 5 << 20, True), ("other", 5 << 20, False),
    ]  # fmt: skip
    assert left == {PATHS[1]}


@pytest.mark.parametrize(
    "identity", [{"banner": "Babelfish for PostgreSQL (Babelfish 4.4.0)"}, {"edition": AZURE_DATABASE}]
)
def test_where_no_backup_can_be_made_no_copy_is_left(new_server, identity):
    server = new_server(**identity)
    server.script.sql("msdb.dbo.backupset", Error(208, "Invalid object name 'msdb.dbo.backupset'."))
    listed = copies(server.engine())
    assert (listed.exit_code, listed.stdout) == (0, "None.\n"), listed.output


def test_a_copy_of_which_msdb_lacks_something_is_listed_with_the_others(engine, script):
    """After an upgrade msdb has no compressed size; it allows NULL for database and end as well."""
    columns = [Column("database_name", nvarchar(128)), Column("path", nvarchar(260))]
    columns += [Column("finished", datetime2(3)), Column("bytes", BIGINT)]
    noted = [("", PATHS[0], None, None), ("other", PATHS[1], MADE, 5 << 20)]
    script.sql("msdb.dbo.backupset", Rows(columns, noted))
    script.sql("RESTORE LABELONLY", Rows([Column("x", INT)], [(1,)]))
    first, second = copies(engine).stdout.splitlines()
    assert first == f"database not known  {PATHS[0]}, size not known, time not known"
    assert second == f"other  {PATHS[1]}, 5\u00a0MiB, 2026-11-23 08:30"
    told = json.loads(copies(engine, "--json").stdout)
    assert (told[0]["finished"], told[0]["bytes"]) == (None, None)


def test_a_copy_that_cannot_be_removed_is_said(engine, script, left):
    left_there = Error(229, "The EXECUTE permission was denied on the object 'xp_delete_file'.", severity=14)
    script._rules.insert(0, Rule(lambda request: "xp_delete_file" in (request.text or ""), (left_there,)))
    refused = copies(engine, "--remove")
    assert refused.exit_code == 3 and "EXECUTE permission was denied" in " ".join(refused.output.split())
    assert left == set(PATHS[:2])


# Restore


class Database:
    """`bank` as the server has it: its state decides who may open it, and statements change it as they do there."""

    def __init__(self, script: Script):
        self.script = script
        self.access = "MULTI_USER"
        self.state: str | None = "ONLINE"
        self.fails_by: Error | None = None
        self.begins = True
        """A restore that fails does so after it has begun."""
        self.closes, self.copy_closes = False, False
        """AUTO_CLOSE, as it is now and as the copy has it."""
        self.may_open = True
        """True if this login may say SET ONLINE."""
        columns = [Column("state", nvarchar(60)), Column("access", nvarchar(60)), Column("closes", INT)]
        script.sql("FROM sys.databases", lambda _: [Rows(columns, [self.row] if self.state else [])])
        script.sql("SET AUTO_CLOSE OFF$", self._stay_open)
        script.sql("SET OFFLINE WITH ROLLBACK IMMEDIATE$", lambda _: self._set("OFFLINE"))
        script.sql("SET ONLINE$", lambda _: self._set("ONLINE"))
        script.sql("^RESTORE DATABASE", self._restore)

    @property
    def row(self) -> tuple[str | None, str, int]:
        return self.state, self.access, int(self.closes)

    def _stay_open(self, _) -> list:
        self.closes = False
        return [Count(0)]

    def become(self, state: str | None, access: str = "MULTI_USER") -> None:
        assert self.script.databases
        self.state, self.access = state, access
        if (state, access) == ("ONLINE", "MULTI_USER"):
            self.script.databases.add("bank")
        else:
            self.script.databases.discard("bank")

    def _set(self, state: str) -> list:
        if state == "ONLINE" and not self.may_open:
            return [Error(5011, "User does not have permission to alter database 'bank'.", severity=14)]
        if self.state == "RESTORING":
            return [Error(5052, "ALTER DATABASE is not permitted while a database is in the Restoring state.")]
        self.become(state)
        return [Count(0)]

    def _restore(self, _) -> list:
        if self.fails_by:
            self.become("RESTORING" if self.begins else self.state)
            return [self.fails_by]
        self.become("ONLINE")
        self.closes = self.copy_closes
        return [Count(0)]


@pytest.fixture
def bank(script: Script) -> Database:
    return Database(script)


def restores(server: Responder) -> list[str]:
    return [it.text for it in server.requests if it.text.startswith(("RESTORE", "ALTER"))]


RESTORE = "RESTORE DATABASE [bank] FROM DISK = N'stallmark-bank.bak' WITH REPLACE, RECOVERY, CHECKSUM"
OFFLINE, ONLINE = (f"ALTER DATABASE [bank] SET {to}" for to in ("OFFLINE WITH ROLLBACK IMMEDIATE", "ONLINE"))
FULL = Error(3257, "There is insufficient free space.", severity=16)


def test_a_restore_leaves_the_database_open_and_no_note(engine, server, script, bank):
    engine.backup.restore()
    assert restores(server) == [OFFLINE, RESTORE]
    assert bank.state == "ONLINE" and not script.properties.values


STAY_OPEN = "ALTER DATABASE [bank] SET AUTO_CLOSE OFF"


@pytest.mark.parametrize(
    ("before", "in_copy", "after", "said"),
    [(False, True, False, [STAY_OPEN]), (False, False, False, []), (True, True, True, []), (True, False, False, [])],
)
def test_a_restore_brings_no_auto_close_to_a_database_that_stayed_open(
    engine, server, bank, before, in_copy, after, said
):
    bank.closes, bank.copy_closes = before, in_copy
    engine.backup.restore()
    assert restores(server) == [OFFLINE, RESTORE, *said] and bank.closes is after


def test_a_restore_that_cannot_begin_is_a_sentence_and_the_database_is_online_again(engine, server, script, bank):
    bank.fails_by, bank.begins = FULL, False
    with pytest.raises(StallmarkError, match="failed: There is insufficient free space"):
        engine.backup.restore()
    assert restores(server) == [OFFLINE, RESTORE, ONLINE]
    assert bank.state == "ONLINE" and not script.properties.values


@pytest.mark.parametrize("begins", [False, True])
def test_a_database_that_stays_closed_is_said_with_the_statements_that_open_it(engine, script, bank, begins):
    bank.fails_by, bank.begins, bank.may_open = FULL, begins, False
    with pytest.raises(StallmarkError) as failed:
        engine.backup.restore()
    said = in_words(failed.value)
    assert "failed: There is insufficient free space" in said and "The database is left closed" in said
    assert ONLINE in said and RESTORE in said
    assert bank.state == ("RESTORING" if begins else "OFFLINE")
    assert list(script.properties.values) == ["stallmark.restore.bank"]  # so that the next run finishes it


def test_ctrl_c_between_offline_and_restore_opens_it_again(engine, server, script, bank, monkeypatch):
    run = engine.backup._run

    def stop_before_restore(statement, what):
        if statement.startswith("RESTORE"):
            raise KeyboardInterrupt
        run(statement, what)

    monkeypatch.setattr(engine.backup, "_run", stop_before_restore)
    with pytest.raises(KeyboardInterrupt):
        engine.backup.restore()
    assert restores(server) == [OFFLINE, ONLINE]
    assert bank.state == "ONLINE" and not script.properties.values


RIGHTS = [
    "the right BACKUP DATABASE",
    "the right VIEW DEFINITION in the database",
    "the right CREATE ANY DATABASE",
    "the right ALTER ANY DATABASE",
    "the role dbcreator or the database itself",
]


@pytest.mark.parametrize("lacking", [[], *([right] for right in RIGHTS), RIGHTS[2:4]])
def test_what_a_restore_needs_is_asked_before_anything_is_closed(engine, server, script, lacking):
    row = tuple(int(right not in lacking) for right in RIGHTS)
    has_copies(script, 0, 0)
    script.sql("BACKUP DATABASE'", Rows([Column(right, INT) for right in RIGHTS], [row]))
    why = engine.backup.refusal()
    if lacking:
        assert why and all((right in why) == (right in lacking) for right in RIGHTS)
    else:
        assert why is None
    assert not restores(server)


@pytest.mark.parametrize("left", ["RESTORING", "OFFLINE", "SINGLE_USER"])
def test_a_restore_that_was_cut_is_finished_by_the_next_run(engine, server, script, bank, left):
    bank.fails_by = Error(3013, "RESTORE DATABASE is terminating abnormally.")
    with pytest.raises(StallmarkError):
        engine.backup.restore()
    assert bank.state == "RESTORING" and list(script.properties.values) == ["stallmark.restore.bank"]
    bank.become(*(("ONLINE", left) if left == "SINGLE_USER" else (left,)))
    bank.fails_by = None
    again = MssqlEngine(engine.spec())  # another process, on whatever machine
    with pytest.raises(StallmarkError, match=re.escape(f"`reset: restore` finishes that, and so does {RESTORE}")):
        again.identity()
    server.forget()
    again.backup.finish_restore()
    assert restores(server) == [OFFLINE, RESTORE][left != "SINGLE_USER" :]
    assert bank.state == "ONLINE" and not script.properties.values
    assert again.identity()


@pytest.mark.parametrize(
    ("state", "access", "expected"),
    [
        ("RESTORING", "MULTI_USER", "RESTORE DATABASE [bank] WITH RECOVERY."),
        ("OFFLINE", "MULTI_USER", "OFFLINE: ALTER DATABASE [bank] SET ONLINE."),
        ("ONLINE", "SINGLE_USER", "session that is in it say ALTER DATABASE [bank] SET MULTI_USER."),
        ("SUSPECT", "MULTI_USER", "the database is SUSPECT: see the error log of the server."),
    ],
)
def test_a_database_that_others_have_closed_is_theirs_to_open(engine, server, bank, state, access, expected):
    bank.become(state, access)
    engine.backup.finish_restore()
    assert not restores(server)
    with pytest.raises(StallmarkError, match=re.escape(expected)):
        engine.identity()


def test_a_note_of_a_restore_is_of_no_meaning_once_the_database_is_open_or_gone(engine, server, script, bank):
    for state in ("ONLINE", None):
        script.properties.values["stallmark.restore.bank"] = '{"was": "ONLINE"}'
        bank.become(state)
        engine.backup.finish_restore()
        assert not restores(server) and not script.properties.values


def test_a_restore_under_way_elsewhere_is_not_disturbed(engine, server, script, bank, monkeypatch):
    script.properties.values["stallmark.restore.bank"] = '{"was": "ONLINE"}'
    bank.become("RESTORING")
    monkeypatch.setitem(LOCK, "taken", -1)
    with pytest.raises(StallmarkError, match="Another Stallmark drives"):
        engine.backup.finish_restore()
    assert not restores(server) and script.properties.values

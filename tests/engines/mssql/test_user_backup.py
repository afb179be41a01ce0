"""A user's own backup on SQL Server: which of its sets is restored, and into which files."""

import pytest
from support.tds.answers import Error, Rows
from support.tds.datatypes import BIT, INT, nvarchar
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.errors import StallmarkError

from .test_backup import bank, restores

__all__ = ["bank"]

FILE = "/backups/it's.bak"
FULL, DIFFERENTIAL = 1, 5
PLACES = [("data", "/ssd/shop.mdf"), ("log", "/log/shop.ldf")]
HEADER = [Column("BackupType", INT), Column("Position", INT), Column("HasBackupChecksums", BIT)]
TEXTS = [Column(name, nvarchar(260)) for name in ("LogicalName", "PhysicalName")]


@pytest.fixture
def backup(engine, script: Script, bank):
    script.sql("FROM sys.master_files", Rows([Column(name, nvarchar(260)) for name in ("name", "path")], PLACES))
    script.sql("RESTORE FILELISTONLY", Rows(TEXTS, [("data", r"D:\\elsewhere.mdf"), ("log", r"D:\\elsewhere.ldf")]))
    return engine.user_backup


@pytest.mark.parametrize("checksums", [True, False])
def test_the_last_full_backup_is_restored_where_the_database_is(backup, server, script, bank, checksums):
    sets = [(FULL, 1, True), (FULL, 2, checksums), (DIFFERENTIAL, 3, True)]
    script.sql("RESTORE HEADERONLY", Rows(HEADER, sets))
    backup.refuse(FILE)
    assert not any("RESTORE DATABASE" in text for text in restores(server)) and bank.state == "ONLINE"
    backup.restore(FILE)
    checked = ", CHECKSUM" if checksums else ""
    assert restores(server)[-1] == (
        f"RESTORE DATABASE [bank] FROM DISK = N'/backups/it''s.bak' WITH FILE = 2, REPLACE, RECOVERY{checked}, "
        "MOVE N'data' TO N'/ssd/shop.mdf', MOVE N'log' TO N'/log/shop.ldf'"
    )
    assert bank.state == "ONLINE"


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        (Error(3201, "Cannot open backup device.", severity=16), "cannot read"),
        (Rows(HEADER, [(DIFFERENTIAL, 1, True)]), "no full backup"),
    ],
)
def test_what_is_no_backup_is_refused_while_the_database_is_open(backup, script, bank, answer, named):
    script.sql("RESTORE HEADERONLY", answer)
    for act in (backup.refuse, backup.restore):
        with pytest.raises(StallmarkError, match=named):
            act(FILE)
    assert bank.state == "ONLINE"


def test_a_backup_with_a_file_that_has_no_place_is_refused(engine, script, bank):
    script.sql("FROM sys.master_files", Rows([Column(name, nvarchar(260)) for name in ("name", "path")], PLACES[:1]))
    script.sql("RESTORE FILELISTONLY", Rows(TEXTS, [("data", "x"), ("log", "y")]))
    script.sql("RESTORE HEADERONLY", Rows(HEADER, [(FULL, 1, True)]))
    with pytest.raises(StallmarkError, match="the file log"):
        engine.user_backup.refuse(FILE)

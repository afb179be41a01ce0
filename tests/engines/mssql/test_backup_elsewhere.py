"""A backup restored into the folders of a variant, and back: the clauses for each file, and what is refused before."""

import pytest
from support.tds.answers import Rows
from support.tds.datatypes import BIGINT, BIT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.engines.abilities import Folders
from stallmark.errors import NotGivenBack, StallmarkError

from .test_backup import FULL, ONLINE, RESTORE, Database, bank, restores

pytestmark = pytest.mark.thorough

__all__ = ["bank"]

GIB = 1024**3
WINDOWS = [
    ("bank", r"C:\data\bank.mdf", "D", "PRIMARY"),
    ("growing_1", r"C:\data\growing_1.ndf", "D", "growing"),
    ("growing_2", r"E:\more\growing_2.ndf", "D", "growing"),
    ("bank_log", r"C:\data\bank_log.ldf", "L", None),
]
LINUX = [
    ("bank", "/var/opt/mssql/data/bank.mdf", "D", "PRIMARY"),
    ("bank_log", "/var/opt/mssql/data/bank_log.ldf", "L", None),
]


def holds(script: Script, files: list[tuple]) -> None:
    columns = [Column(name, nvarchar(260)) for name in ("LogicalName", "PhysicalName", "Type", "FileGroupName")]
    script.sql("RESTORE FILELISTONLY", Rows(columns, files))


@pytest.mark.parametrize(
    ("files", "to", "moves"),
    [
        (LINUX, Folders("/ssd"), {"bank": "/ssd/bank.mdf", "bank_log": "/ssd/bank_log.ldf"}),
        (LINUX, Folders("/ssd/", "/log"), {"bank": "/ssd/bank.mdf", "bank_log": "/log/bank_log.ldf"}),
        (
            WINDOWS,
            Folders("S:\\", r"L:\log", {"growing": r"G:\new's"}),
            {
                "bank": r"S:\bank.mdf",
                "growing_1": r"G:\new''s\growing_1.ndf",
                "growing_2": r"G:\new''s\growing_2.ndf",
                "bank_log": r"L:\log\bank_log.ldf",
            },
        ),
    ],
)
def test_every_file_goes_into_its_folder_and_back(engine, server, script, bank, files, to, moves):
    holds(script, files)
    engine.backup.restore(to)
    clauses = ", ".join(f"MOVE N'{name}' TO N'{path}'" for name, path in moves.items())
    assert restores(server)[-1] == f"{RESTORE}, {clauses}"
    server.forget()
    engine.backup.bring_home()
    assert restores(server)[-1] == RESTORE and bank.state == "ONLINE"
    server.forget()
    engine.backup.bring_home()
    assert restores(server) == []


@pytest.mark.parametrize(
    ("files", "to", "named"),
    [
        (WINDOWS, Folders("S:\\", filegroups={"shrinking": "G:\\"}), "shrinking"),
        ([*WINDOWS, ("twin", r"F:\bank.mdf", "D", "growing")], Folders("S:\\"), r"S:\\bank.mdf"),
    ],
)
def test_what_cannot_be_is_refused_before_the_database_is_closed(engine, server, script, bank, files, to, named):
    holds(script, files)
    with pytest.raises(StallmarkError, match=named):
        engine.backup.restore(to)
    assert bank.state == "ONLINE"
    assert all(text.startswith("RESTORE FILELISTONLY") for text in restores(server))
    assert not script.properties.values


def test_a_database_that_could_not_be_brought_home_is_said_with_the_statement(engine, script, bank: Database):
    holds(script, LINUX)
    engine.backup.restore(Folders("/ssd"))
    bank.fails_by, bank.begins = FULL, False
    with pytest.raises(NotGivenBack) as left:
        engine.backup.bring_home()
    assert "/ssd" in str(left.value) and RESTORE in str(left.value)


def test_a_restore_elsewhere_that_failed_leaves_nothing_to_bring_home(engine, server: Responder, script, bank):
    holds(script, LINUX)
    bank.fails_by, bank.begins = FULL, False
    with pytest.raises(StallmarkError):
        engine.backup.restore(Folders("/ssd"))
    assert restores(server)[-1] == ONLINE
    bank.fails_by = None
    server.forget()
    engine.backup.bring_home()
    assert restores(server) == []


def can_look(script: Script, folders: set[str], free: dict[str, int]) -> None:
    def is_folder(request) -> list:
        return [Rows([Column("is", BIT)], [(request.parameters[-1].value in folders,)])]

    def drive(request) -> list:
        found = free.get(request.parameters[-1].value)
        return [Rows([Column("free", BIGINT)], [] if found is None else [(found,)])]

    script.sql("dm_os_file_exists", is_folder)
    script.sql("dm_os_enumerate_fixed_drives", drive)


@pytest.mark.parametrize(
    ("to", "named"),
    [
        (Folders("S:\\db", "L:\\log"), None),
        (Folders("S:\\db", "L:\\gone"), "L:.gone"),
        (Folders("S:\\gone"), "S:.gone"),
        (Folders("S:\\db", filegroups={"growing": "G:\\gone"}), "G:.gone"),
        (Folders("T:\\db"), "T:.db has 1\\sGiB free"),
        (Folders("/ssd", "/log"), None),
    ],
)
def test_folders_are_looked_at_before_anything_starts(engine, script, to, named):
    can_look(script, {"S:\\db", "L:\\log", "T:\\db", "/ssd", "/log"}, {"S:": 9 * GIB, "T:": GIB, "/s": 1})
    if named is None:
        engine.backup.refuse_folders(to, 2 * GIB)
    else:
        with pytest.raises(StallmarkError, match=named):
            engine.backup.refuse_folders(to, 2 * GIB)

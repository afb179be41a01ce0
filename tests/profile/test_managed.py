"""Profiles of managed services: our database's counters by the name they have there, and the service's own database."""

import re
import sqlite3
from contextlib import closing

import pytest
from support.mssql_server import ENTERPRISE, MANAGED_INSTANCE, answering
from support.production import COUNTERS, Production

from stallmark.analysis.profile import summarise_profile
from stallmark.analysis.profile_rates import ProfileKind
from stallmark.engines import sql_file
from stallmark.errors import StallmarkError
from stallmark.profile.collection import Collection
from stallmark.profile.command import source_for
from stallmark.record.formats.perfmon import SYSTEM_DATABASES


def profiled(production: Production, folder, **says) -> None:
    with answering(production.script(**says), encryption="none") as server:
        url = f"mssql://watcher:secret@127.0.0.1:{server.port}/Sales?Encrypt=no"
        Collection(source_for(url, anonymous=False), folder, 400.0, clock=production.clock()).run()


@pytest.mark.parametrize(
    ("says", "by_files"),
    [({"edition": ENTERPRISE}, False), ({"edition": MANAGED_INSTANCE, "version": "12.0.2000.8"}, True)],
)
def test_counters_of_our_database_have_the_name_of_its_files_on_azure(tmp_path, says, by_files):
    """There the instance of `Databases:` is a GUID, sys.databases.physical_database_name."""
    production = Production()
    profiled(production, tmp_path / "p", **says)
    [text] = production.asked
    assert ("split.instance = (SELECT own.physical_database_name" in text) is by_files
    assert ("split.instance = DB_NAME()" in text) is not by_files
    assert summarise_profile(tmp_path / "p").rates is not None


@pytest.mark.parametrize("lost", [(), ("transactions", "log_flushes", "log_bytes")])
def test_a_profile_without_counters_of_our_database_says_so(tmp_path, monkeypatch, lost):
    monkeypatch.setattr("support.production.COUNTERS", {k: v for k, v in COUNTERS.items() if k not in lost})
    profiled(Production(), tmp_path / "p")
    found = summarise_profile(tmp_path / "p")
    names = {one.facts["name"] for one in found.cautions if one.kind is ProfileKind.MISSING}
    assert ("transactions" in names) is bool(lost)


@pytest.mark.parametrize("part", ["files", "counters"])
def test_the_database_of_rds_is_nobody_s(part):
    text = sql_file.statement("stallmark.profile.mssql", part)
    assert re.search(r"'rdsadmin'", re.sub(r"--.*", "", text))


def test_a_refusal_names_the_right_that_it_wants(tmp_path, monkeypatch):
    from support import published_waits as published
    from support.tds.answers import Error

    denied = Error(300, published.DENIED_2022, severity=14)
    monkeypatch.setattr("support.production.FORBIDDEN", denied)
    with pytest.raises(StallmarkError, match="GRANT VIEW SERVER PERFORMANCE STATE TO it"):
        profiled(Production(forbidden=True), tmp_path / "p")
    assert not (tmp_path / "p").exists()


def file_class(database_id: int, file_id: int = 1, ours: int = 1, name: str = "Sales") -> str:
    """The class that the query gives to a file on a connection to `ours`."""
    text = re.sub(r"--.*| COLLATE \w+", "", sql_file.statement("stallmark.profile.mssql", "files"))
    [case] = re.findall(r"(CASE WHEN io\.database_id = 2 .*? END) AS file_class", text, re.S)
    with closing(sqlite3.connect(":memory:")) as calculator:
        calculator.create_function("DB_ID", 0, lambda: ours)
        calculator.create_function("DB_NAME", 1, lambda number: name)
        file = f"SELECT {database_id} AS database_id, {file_id} AS file_id"
        [(found,)] = calculator.execute(f"SELECT {case} FROM ({file}) AS io, (SELECT NULL AS type) AS named")
    return found


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ({"database_id": 5}, "data"),
        ({"database_id": 5, "file_id": 2}, "log"),
        ({"database_id": 5, "ours": 5}, "data"),
        ({"database_id": 6, "ours": 5}, "other"),
        ({"database_id": 2}, "tempdb"),
        ({"database_id": 7, "name": "rdsadmin"}, "other"),
        *(({"database_id": number}, "other") for number in (1, 3, 4, 32761, 32762, 32767)),
    ],
)
def test_databases_of_the_server_s_own_hold_no_data_of_users(file, expected):
    """From 2022 on model_msdb and model_replicatedmaster have files too, with numbers of databases from 32761 on."""
    assert file_class(**file) == expected


def test_counters_of_the_server_s_own_databases_are_nobody_s():
    """In a profile that is sampled and in one that is imported."""
    text = re.sub(r"--.*", "", sql_file.statement("stallmark.profile.mssql", "counters"))
    [names] = re.findall(r"split\.instance NOT IN \(([^)]*)\)", text)
    assert {name.strip(" \n'") for name in names.split(",")} == SYSTEM_DATABASES | {"_Total"}
    assert {"model_msdb", "model_replicatedmaster"} <= SYSTEM_DATABASES

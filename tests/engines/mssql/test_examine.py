"""The doctor's examination of a SQL Server: its edition, each right of the login, and what then is not done; and the
settings that the manifest takes from it."""

import re
from collections import Counter

import pytest
from support.mssql_server import (
    AZURE_DATABASE,
    ENTERPRISE,
    EXPRESS,
    MANAGED_INSTANCE,
    STANDARD,
    answering,
    engine_at,
    rows,
    says_it_is,
)
from support.tds.answers import Count, Error, Rows
from support.tds.datatypes import BIGINT, INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column
from support.waiting import eventually

from stallmark import engines
from stallmark.cli import doctor
from stallmark.engines.abilities import BackupOptions
from stallmark.engines.mssql import settings
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.engines.mssql.examine import examine, limits
from stallmark.errors import StallmarkError
from stallmark.experiment.target import Target

pytestmark = pytest.mark.thorough

LEVEL, RECOVERY, CLOSES = {"is": 160}, {"is": "SIMPLE"}, {"is": 0}
DRIVER = r"(lib)?msodbcsql\S+ 1[78](\.\d+)+"
BABELFISH = "Babelfish for PostgreSQL with SQL Server Compatibility - 12.0.2000.8"


@pytest.fixture
def script() -> Script:
    script = Script(databases=["bank", "master"])
    script.sql("'ServerName'", Rows([Column("name", nvarchar(128))], [("DB",)]))
    script.sql("sys.extended_properties", Rows([Column("value", nvarchar(3750))], []))
    script.sql("Updateability", Rows([Column("is", nvarchar(60))], [("READ_WRITE",)]), times=1)
    script.sql("is_auto_close_on", lambda _: [Rows([Column("closes", INT)], [(CLOSES["is"],)])])
    script.sql("'Recovery'", lambda _: [Rows([Column("model", nvarchar(60))], [(RECOVERY["is"],)])])
    script.sql("compatibility_level", lambda _: [Rows([Column("level", INT)], [(LEVEL["is"],)])])
    return script


@pytest.fixture
def engine(server: Responder) -> MssqlEngine:
    return engine_at(server)


def may(script: Script, *denied: str) -> None:
    """Every right that is asked for is granted, but those."""

    def answer(request) -> list:
        rights = re.findall(r"AS \[(.+?)\]", request.text)
        return [Rows([Column(right, INT) for right in rights], [[int(it not in denied) for it in rights]])]

    script.sql("'CREATE SCHEMA'", answer)


def found(engine: MssqlEngine) -> dict[str, tuple[str, str]]:
    return {one.subject: (one.state, one.sentence) for one in examine(engine)}


# Rights


def test_a_login_that_may_everything_hears_nothing_of_it(script, engine):
    says_it_is(script)
    may(script)
    said = found(engine)
    assert said.keys() == {"ODBC driver", "bulk copy", "encryption"}
    assert re.fullmatch(DRIVER + r"\.", said["ODBC driver"][1])


@pytest.mark.parametrize(
    ("right", "state", "consequence"),
    [
        ("VIEW SERVER PERFORMANCE STATE", "limited", "nothing of waits, memory and stalls can be measured: in master"),
        ("VIEW ANY DEFINITION", "limited", "files are known by number and not by name: in master, GRANT VIEW ANY DEF"),
        ("CREATE TABLE", "missing", "no database can be built: make it a member of db_owner."),
        ("CREATE SCHEMA", "missing", "no database can be built"),
        ("CREATE PROCEDURE", "missing", "no database can be built"),
    ],
)
def test_each_right_and_what_is_not_done_without_it(script, engine, right, state, consequence):
    says_it_is(script)
    may(script, right)
    said = found(engine)[right]
    assert said[0] == state and f"this login has no {right}, so {consequence}" in said[1]


@pytest.mark.parametrize(("level", "said"), [(120, "COMPATIBILITY_LEVEL = 130"), (130, None), (170, None)])
def test_a_level_without_string_split_is_said_before_anything_is_built(script, engine, level, said, monkeypatch):
    """STRING_SPLIT: "requires compatibility level 130 or higher" (learn.microsoft.com, STRING_SPLIT)."""
    says_it_is(script)
    may(script)
    monkeypatch.setitem(LEVEL, "is", level)
    state, sentence = found(engine).get("compatibility level", ("", ""))
    assert (state == "missing") == (said is not None) and (said or "") in sentence
    assert bool(engine.unfit()) == (said is not None)


def test_a_read_only_database_cannot_be_driven(script, engine):
    says_it_is(script)
    may(script)
    assert "database" not in found(engine)
    script.sql("Updateability", Rows([Column("is", nvarchar(60))], [("READ_ONLY",)]))
    state, sentence = found(engine)["database"]
    assert state == "missing" and "SET READ_WRITE" in sentence


def test_a_server_that_does_not_tell_its_rights(script, engine):
    says_it_is(script)
    script.sql("'CREATE SCHEMA'", Error(297, "The user does not have permission to perform this action."))
    state, sentence = found(engine)["rights"]
    assert state == "limited" and "does not have permission to perform this action" in sentence


# What a run may ask for besides


def answer_may(script: Script, question: str, answer: int) -> None:
    script.sql(question, Rows([Column("may", INT)], [(answer,)]))


@pytest.mark.parametrize(
    ("edition", "banner", "permitted", "why"),
    [
        (ENTERPRISE, "Microsoft SQL Server 2022", 1, None),
        (ENTERPRISE, "Microsoft SQL Server 2022", 0, "may not create a database: in master, GRANT CREATE ANY DATABASE"),
        (AZURE_DATABASE, "Microsoft SQL Azure", 1, "Azure SQL puts a database's files where it wants them"),
        (MANAGED_INSTANCE, "Microsoft SQL Azure", 1, "Azure SQL puts"),
        (STANDARD, BABELFISH, 1, "Babelfish ignores"),
    ],
)
def test_where_nothing_can_be_placed(script, engine, edition, banner, permitted, why):
    says_it_is(script, edition=edition, banner=banner)
    answer_may(script, "'CREATE ANY DATABASE'", permitted)
    said = engine.placement.refusal()
    assert (said is None) if why is None else (said and why in said)


@pytest.mark.parametrize(
    ("version", "question", "needed"),
    [
        ("15.0.4430.1", r"IS_SRVROLEMEMBER\('sysadmin'\)", "the role sysadmin"),
        ("16.0.4085.2", "'ALTER SERVER STATE'", "the right ALTER SERVER STATE"),
    ],
)
def test_who_may_empty_the_caches(script, engine, version, question, needed):
    says_it_is(script, version)
    answer_may(script, question, 0)
    engine.caches.allowed = True
    assert needed in str(engine.caches.refusal())


CLOSING = (
    "the database closes once no session is in it (AUTO_CLOSE), and all that was in memory is lost: run ALTER DATABASE "
    "[bank] SET AUTO_CLOSE OFF"
)


@pytest.mark.parametrize(("closes", "advice"), [(1, CLOSING), (0, None)])
def test_a_database_that_closes_cannot_be_prefilled_and_doctor_names_it(script, engine, monkeypatch, closes, advice):
    monkeypatch.setitem(CLOSES, "is", closes)
    says_it_is(script, edition=EXPRESS)
    may(script)
    assert engine.prefill.refusal() == advice
    assert found(engine).get("AUTO_CLOSE") == (("limited", f"{advice}.") if advice else None)


def test_babelfish_cannot_be_prefilled(script, engine):
    says_it_is(script, banner=BABELFISH)
    assert "Babelfish does not tell" in str(engine.prefill.refusal())


# Editions


@pytest.mark.parametrize(
    ("edition", "major", "name", "words"),
    [
        (EXPRESS, 16, "Express Edition (64-bit)", "1,410 MB of buffer pool, 4 cores and 10 GB per database"),
        (EXPRESS, 17, "Express Edition (64-bit)", "50 GB per database"),
        (STANDARD, 16, "Web Edition (64-bit)", "64 GB of buffer pool and 16 cores"),
        (STANDARD, 16, "Standard Edition (64-bit)", "128 GB of buffer pool and 24 cores"),
        (STANDARD, 17, "Standard Developer Edition (64-bit)", "256 GB of buffer pool and 32 cores"),
    ],
)
def test_what_an_edition_uses_at_most(edition, major, name, words):
    assert words in str(limits(edition, major, name))


def test_editions_without_a_limit_of_their_own():
    assert limits(ENTERPRISE, 16, "Developer Edition (64-bit)") is None
    assert limits(AZURE_DATABASE, 12, "SQL Azure") is None


def test_an_edition_s_limits_are_told_as_such(script, engine):
    says_it_is(script, edition=EXPRESS)
    may(script)
    state, sentence = found(engine)["edition"]
    assert state == "limited" and sentence.startswith("Express uses")


# Settings


@pytest.mark.parametrize(("platform", "hidden"), [("Windows", 1), ("Linux", 3)])
def test_what_no_statement_tells_is_said(script, engine, platform, hidden):
    says_it_is(script)
    columns = [Column(name, nvarchar(60)) for name in ("platform", "distribution", "release")]
    script.sql("dm_os_host_info", Rows(columns, [(platform, "some", "1")]))
    read = settings.read(engine).configuration
    unseen = [name for name, value in read.items() if value == settings.NOT_VISIBLE]
    assert len(unseen) == hidden and "sector size of the volumes" in unseen
    assert ("mssql.conf control.writethrough" in unseen) == (platform == "Linux")


def test_the_driver_of_a_run_is_in_its_manifest(script, engine):
    says_it_is(script)
    assert re.fullmatch(DRIVER, settings.read(engine).momentary["ODBC driver"])


def test_trace_flags_are_named_and_their_absence_too(script, engine):
    says_it_is(script)
    columns = [Column("TraceFlag", INT), *(Column(name, INT) for name in ("Status", "Global", "Session"))]
    script.sql("TRACESTATUS", Rows(columns, [(3979, 1, 1, 0), (3982, 1, 1, 0)]), times=1)
    assert settings.read(engine).configuration["trace flags"] == "3979, 3982"
    script.sql("TRACESTATUS", Rows(columns, []), times=1)
    assert settings.read(engine).configuration["trace flags"] == "none"
    assert "the script has no answer" in settings.read(engine).unreadable["trace flags"]


def test_what_came_later_is_not_asked_of_an_older_version(script, engine, server):
    says_it_is(script, "14.0.3465.1")
    read = settings.read(engine).configuration
    assert not any("accelerated" in name for name in read)
    assert not any("accelerated" in (request.text or "") for request in server.requests)


def test_volumes_are_in_the_settings(script, engine):
    says_it_is(script)
    columns = [Column("volume_mount_point", nvarchar(512)), Column("file_system_type", nvarchar(512))]
    columns += [Column("total_bytes", INT), Column("is_compressed", INT)]
    script.sql(
        "dm_os_volume_stats",
        Rows(columns, [("D:\\", "NTFS", 64 << 20, 1), ("", "", 1 << 20, 0), ("/", None, None, None)]),
    )
    read = settings.read(engine).placement
    assert read["volume D:\\"] == "NTFS, 64 MiB, compressed" and read["volume -"] == "unknown, 1 MiB"
    assert read["volume /"] == "unknown, unknown"


def test_space_is_free_where_data_lies_and_not_where_the_log_does(script, engine):
    says_it_is(script)
    volumes = r"MIN\(v.available_bytes\)\s+FROM sys.database_files AS f\s+CROSS APPLY sys.dm_os_volume_stats\(.*\) AS v"
    assert engine.free_bytes() is None  # a server that does not tell
    script.sql(volumes + r"\s+WHERE f.type_desc = 'ROWS'\)", Rows([Column("free_bytes", BIGINT)], [(7 << 30,)]))
    assert engine.free_bytes() == 7 << 30


# Babelfish


def test_a_babelfish_as_it_is_installed_is_told_how_to_let_the_brokerage_in(script, engine):
    """4.4 refuses both levels until it is set ("Babelfish supports transaction isolation levels")."""
    says_it_is(script, banner=BABELFISH)
    may(script)
    script.sql("LEVEL REPEATABLE READ", Error(33557097, "isolation level is not supported", severity=16))
    script.sql("LEVEL SERIALIZABLE", Count(0))
    state, sentence = found(engine)["isolation level REPEATABLE READ"]
    assert state == "limited" and "(isolation level is not supported)" in sentence
    assert "babelfishpg_tsql.isolation_level_repeatable_read = 'pg_isolation'" in sentence
    assert "isolation level SERIALIZABLE" not in found(engine)


def test_what_needs_the_management_views_is_said_once(script, server):
    says_it_is(script, banner=BABELFISH)
    url = f"mssql://tester:secret@127.0.0.1:{server.port}/bank?TrustServerCertificate=yes"
    said = [one for one in doctor.examine(Target(url)) if "management views" in one.sentence]
    assert len(said) == 1 and said[0].subject.count(",") > 10


def test_a_server_without_encryption_names_the_option_that_lets_it_in(script):
    says_it_is(script)
    with answering(script, encryption="never") as plain, pytest.raises(StallmarkError, match=r"add \?Encrypt=no"):
        engine_at(plain).identity()


@pytest.mark.parametrize(("model", "edition", "says"), [
    ("SIMPLE", ENTERPRISE, False), ("FULL", ENTERPRISE, True), ("BULK_LOGGED", STANDARD, True),
    ("FULL", AZURE_DATABASE, False), ("FULL", MANAGED_INSTANCE, False),
])  # fmt: skip
def test_a_database_that_keeps_its_log_is_told(engine, script, monkeypatch, model, edition, says):
    monkeypatch.setitem(RECOVERY, "is", model)
    says_it_is(script, edition=edition)
    may(script)
    found = [(one.state, model in one.sentence) for one in examine(engine) if one.subject == "recovery model"]
    assert found == ([("limited", True)] if says else [])


TEXT, NUMBER = nvarchar(128), INT
COMPARABLE = {  # by what is asked: the columns of the answer, its rows, and what the manifest then says
    "database_scoped_configurations": (
        {"name": TEXT, "value": TEXT}, [("LEGACY_CARDINALITY_ESTIMATION", "0"), ("MAXDOP", "4")],
        {"database scoped LEGACY_CARDINALITY_ESTIMATION": "0", "database scoped MAXDOP": "4"},
    ),
    "database_automatic_tuning_options": (
        {"name": TEXT, "value": TEXT}, [("FORCE_LAST_GOOD_PLAN", "ON")],
        {"automatic tuning FORCE_LAST_GOOD_PLAN": "ON"},
    ),
    "database_query_store_options": (
        {"mode": TEXT, "capture": TEXT}, [("READ_WRITE", "AUTO")],
        {"query store mode": "READ_WRITE", "query store capture": "AUTO"},
    ),
    "dm_hadr_database_replica_states": (
        {"role": TEXT, "commit_mode": TEXT, "synchronous_secondaries": NUMBER}, [("PRIMARY", "SYNCHRONOUS_COMMIT", 2)],
        {"availability group role": "PRIMARY", "availability group commit mode": "SYNCHRONOUS_COMMIT",
         "availability group synchronous secondaries": "2"},
    ),
    "resource_governor_configuration": (
        {"enabled": NUMBER, "workload_group": TEXT}, [(1, "default")],
        {"resource governor enabled": "1", "resource governor workload group": "default"},
    ),
    "IsTempdbMetadataMemoryOptimized": ({"metadata_in_memory": NUMBER}, [(1,)], {"tempdb metadata in memory": "1"}),
    "IsOptimizedLockingOn": ({"optimized_locking": NUMBER}, [(0,)], {"database optimized locking": "0"}),
    "is_change_feed_enabled": (
        {"change_feed": NUMBER, "ledger": NUMBER}, [(1, 0)], {"database change feed": "1", "database ledger": "0"}
    ),
    "d.database_id = 2": ({"accelerated_recovery": NUMBER}, [(1,)], {"tempdb accelerated recovery": "1"}),
    "group_max_tempdb_data_mb": (
        {"tempdb_limit_mb": NUMBER, "tempdb_limit_percent": NUMBER}, [(2048, None)],
        {"resource governor tempdb limit mb": "2048", "resource governor tempdb limit percent": "None"},
    ),
    "backup compression algorithm": (
        {"name": TEXT, "value": NUMBER}, [("backup compression algorithm", 3)], {"backup compression algorithm": "3"}
    ),
}  # fmt: skip


def test_what_decides_whether_runs_compare_is_in_the_settings(script, engine, server):
    says_it_is(script, "17.0.1000.7")
    for words, (columns, answers, _) in COMPARABLE.items():
        script.sql(words, Rows([Column(name, kind) for name, kind in columns.items()], answers))
    read = settings.read(engine).configuration
    for _, _, told in COMPARABLE.values():
        assert told.items() <= read.items()
    [asked] = [it.connection for it in server.requests if "resource_governor_configuration" in (it.text or "")]
    assert server.logins[asked - 1].application == "stallmark-user"  # who is sorted as users are
    for name in ("softnuma_configuration_desc", "is_auto_update_stats_async_on"):
        assert any(name in (request.text or "") for request in server.requests)


def test_options_that_came_with_2025_are_asked_for(script, engine, server):
    says_it_is(script, "17.0.1000.7")
    settings.read(engine)
    [asked] = [request.text for request in server.requests if "sys.configurations" in (request.text or "")]
    for option in (
        "ADR cleaner lock timeout (s)", "SLOG memory quota (%)", "availability group commit time (ms)",
        "tiered memory enabled", "max server tiered memory (MB)", "max lock manager cache memory (%)",
    ):  # fmt: skip
        assert f"'{option}'" in asked


def test_a_database_in_no_group_says_so(script, engine):
    says_it_is(script)
    columns, _, _ = COMPARABLE["dm_hadr_database_replica_states"]
    script.sql("dm_hadr_database_replica_states", Rows([Column(name, kind) for name, kind in columns.items()], []))
    assert settings.read(engine).configuration["availability group role"] == "none"


def test_replicas_that_are_hidden_are_not_recorded_as_none(script, engine):
    """Zabbix ZBX-26626: without VIEW ANY DEFINITION the catalogue of replicas is empty, and their states are not."""
    says_it_is(script)
    columns, _, _ = COMPARABLE["dm_hadr_database_replica_states"]
    hidden = Rows([Column(name, kind) for name, kind in columns.items()], [("PRIMARY", None, None)])
    script.sql("dm_hadr_database_replica_states", hidden)
    read = settings.read(engine)
    assert read.configuration["availability group role"] == "PRIMARY"
    assert not {name for name in read.configuration if "commit mode" in name or "secondaries" in name}
    assert "VIEW ANY DEFINITION" in read.unreadable["settings_replica"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (r"FROM sys\.resource_governor_configuration", "settings_governor"),
        (r"JOIN sys\.resource_governor_workload_groups", "settings_tempdb_limit.17"),
        ("database_files AS temp", "settings_files"),
    ],
)
def test_what_a_login_without_a_right_finds_empty_is_recorded_as_hidden(script, engine, words, part):
    """A row that is hidden is no missing limit: that would be NULL, and no missing Resource Governor."""
    says_it_is(script, version="17.0.1000.7")
    script.sql(words, rows(["one", "two"]))
    read = settings.read(engine)
    assert "hidden from this login, which needs VIEW ANY DEFINITION" in read.unreadable[part]
    assert not {name for name in read.configuration if "tempdb limit" in name or "governor" in name}


def test_files_are_known_to_a_login_without_a_right(script, engine):
    """sys.master_files is empty for it: our files have their sizes all the same, and that of tempdb is not guessed."""
    says_it_is(script)
    names = ["database_name", "name", "type_desc", "physical_name", "pages", "growth", "is_percent_growth"]
    ours, temp = (
        ("bank", "data", "ROWS", "D:\\bank.mdf", 131072, 8192, False),
        ("tempdb", "tempdev", "ROWS", "T:\\t.mdf"),
    )
    script.sql("LEFT JOIN sys.master_files AS named", rows(names, ours, (*temp, None, 10, True)))
    assert settings.read(engine).placement == {
        "file bank.data": "ROWS, D:\\bank.mdf, 1024 MiB, grows by 64 MiB",
        "file tempdb.tempdev": "ROWS, T:\\t.mdf, size unknown, grows by 10 %",
    }


@pytest.mark.parametrize(
    ("state", "text", "remedy"),
    [  # msphpsql #1462, pyodbc #610; with German texts, native codes of Windows
        ("08001", "SSL Provider: [error:0A000086:SSL routines::certificate verify failed] (-1)", "TrustServerCert"),
        ("08001", "SSL-Anbieter: Die Zertifikatkette wurde nicht vertraut. (-2146893019)", "TrustServerCertificate"),
        ("08001", "SSL-Anbieter: Der Zielprinzipalname ist falsch. (-2146893022)", "TrustServerCertificate=yes"),
        ("08001", "SSL Provider: [error:0A000102:SSL routines::unsupported protocol] (-1)", "TLS 1.2 on the server"),
        ("08001", "SSL-Anbieter: Kein gemeinsamer Algorithmus. (-2146893007)", "TLS 1.2 on the server"),
        ("08001", "TCP Provider: Error code 0x2746 (10054)", "TLS 1.2 on the server"),
        ("08001", "SSL-Anbieter: Unbekannt. (-2146893048)", "The server answers"),
        ("HYT00", "Login timeout expired (0)", "that the server is running"),
        ("HY000", "SQL Server Network Interfaces: SSPI: Der Zielprinzipalname ist falsch. (-2146893022)", ""),
    ],
)
def test_a_server_that_was_reached_is_not_told_as_one_that_is_off(engine, state, text, remedy):
    why = engine.no_connection_reason(
        Exception(state, f"[{state}] [Microsoft][ODBC Driver 18 for SQL Server]{text} (SQLDriverConnect)")
    )
    assert remedy in why and ("that the server is running" in why) == ("running" in remedy)
    assert ("TrustServerCertificate" in why) == ("TrustServerCert" in remedy)


def test_the_settings_do_not_log_in_for_each_part(script, engine, server):
    says_it_is(script, "17.0.1000.7")
    _answer_settings(script)
    with engine.few_logins():
        assert settings.read(engine).unreadable, "an error ends no session"
    applications = Counter(login.application for login in server.logins)
    assert applications == {"stallmark-collector": 2, "stallmark-user": 2}, "ours and the note in master; a user's"


def test_the_settings_of_several_databases_do_not_log_in_for_each_part(script, engine, server):
    says_it_is(script, "17.0.1000.7")
    script.databases.add("mail")
    script.sql(r"SELECT DB_NAME\(\)", Rows([Column("name", nvarchar(128))], [("mail",)]))
    _answer_settings(script)
    engine.by_workload = {name: engine.on_database(name) for name in ("bank", "mail")}
    with engine.few_logins():
        engines.settings(engine)
    own = Counter(login.database for login in server.logins if login.application == "stallmark-collector")
    assert own == {"bank": 1, "mail": 1, "master": 1}
    eventually(lambda: server.open_connections == 0)


def _answer_settings(script):
    for words, (columns, answers, _) in COMPARABLE.items():
        script.sql(words, Rows([Column(name, kind) for name, kind in columns.items()], answers))


@pytest.mark.parametrize(("version", "refused"), [("16.0.1000.6", True), ("17.0.1000.7", False)])
def test_an_algorithm_that_the_version_lacks_is_refused_before_a_build(script, engine, version, refused):
    says_it_is(script, version)
    script.sql("sys.database_mirroring", Rows([Column("mirrored", INT)], [(0,)]))
    script.sql("'BACKUP DATABASE'", Rows([Column("the right", INT)], [(1,)]))
    engine.backup.options = BackupOptions(compression="zstd")
    assert ("by zstd: use `compression: on`" in (engine.backup.refusal() or "")) == refused


def test_babelfish_has_a_version_of_its_own(script, engine):
    """babelfish_extensions, contrib/babelfishpg_tsql/runtime/functions.c: @@VERSION ends with "(Babelfish %s)"."""
    banner = f"{BABELFISH}\nOct 1 2024 09:00:00\nCopyright (c) Amazon Web Services\nPG 16.4 (Babelfish 4.4.0)"
    says_it_is(script, "12.0.2000.8", STANDARD, banner)
    assert (engine.identity().product, engine.identity().version_text) == ("Babelfish", "4.4.0")

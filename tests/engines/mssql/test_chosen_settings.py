"""Settings of a SQL Server that a variant chooses: refused or set, read back, and given back also after a kill."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.mssql_server import rows
from support.mssql_settings import ADVANCED, CAP, FILLFACTOR, FLOOR, PARALLELISM, Settings
from support.simulated_time import Clock
from support.tds.answers import Count, Error
from support.tsql import parser

from stallmark import engines
from stallmark.engines.mssql import chosen_settings, memory, variant_settings
from stallmark.engines.mssql.chosen_settings import DATABASE_OPTIONS, OPTION, SCOPED, SERVER
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import CallFailed, NotGivenBack, StallmarkError

pytestmark = pytest.mark.thorough

XP, DEGREE = "xp_cmdshell", "max degree of parallelism"
OF_DATABASE = {
    "snapshot_isolation": "OFF", "page_verify": "CHECKSUM", "compatibility_level": 160, "query_store": True,
    "delayed_durability": "DISABLED", "target_recovery_time_s": 60, "auto_create_statistics": True,
    "auto_update_statistics": True, "auto_update_statistics_later": False,
}  # fmt: skip
COLUMNS = {
    "ALLOW_SNAPSHOT_ISOLATION": "snapshot_isolation", "PAGE_VERIFY": "page_verify",
    "COMPATIBILITY_LEVEL": "compatibility_level", "DELAYED_DURABILITY": "delayed_durability",
    "TARGET_RECOVERY_TIME": "target_recovery_time_s", "QUERY_STORE": "query_store",
    "AUTO_CREATE_STATISTICS": "auto_create_statistics", "AUTO_UPDATE_STATISTICS": "auto_update_statistics",
    "AUTO_UPDATE_STATISTICS_ASYNC": "auto_update_statistics_later",
    "ACCELERATED_DATABASE_RECOVERY": "accelerated_recovery",
}  # fmt: skip
RECORDED = (CAP, FLOOR, PARALLELISM, DEGREE, FILLFACTOR)
RANGES = {PARALLELISM: (0, 32767), FILLFACTOR: (0, 100), XP: (0, 1), DEGREE: (0, 32767), CAP: (128, 2147483647)}


class Server:
    """A server's options, those of its database, and scoped ones; `statements` are those that changed any."""

    def __init__(self, script):
        self.statements: list[str] = []
        self.may, self.refuses = [1, 1, 1], 0  # the error of a change
        self.takes: int | None = None  # the changes before that error; None: none
        self.database = OF_DATABASE | {}
        self.adr = False
        self.scoped = {"MAXDOP": "0", "LEGACY_CARDINALITY_ESTIMATION": "0", "PARAMETER_SNIFFING": "1"}
        script.sql("ALTER SETTINGS", lambda _: [rows(["server", "options", "scoped"], self.may)])
        script.sql(r"CAST\(minimum", lambda _: [rows(
            ["name", "minimum", "maximum", "is_dynamic"],
            *((name, *RANGES.get(name, (0, 1)), name != FILLFACTOR) for name in (*self.settings.values, XP)),
        )])  # fmt: skip
        self.settings = Settings(script)
        self.settings.values[DEGREE] = self.settings.in_use[DEGREE] = 0
        script.sql(r"CAST\(c\.value_in_use", lambda _: [rows(
            ["name", "value"], *((name, self.settings.in_use[name]) for name in RECORDED)
        )])  # fmt: skip
        script.sql("is_accelerated_database_recovery_on", lambda _: [rows(["accelerated_recovery"], [self.adr])])
        script.sql("d.recovery_model_desc", lambda _: [rows([*self.database], [*self.database.values()])])
        script.sql("FROM sys.database_scoped_configurations", lambda _: [rows(["name", "value"], *self.scoped.items())])
        script.sql("^ALTER DATABASE", self._alter)
        script.sql(r"^SELECT DB_NAME\(\)$", rows(["name"], ["bank"]))
        script.sql(r"^SELECT DB_ID\(", rows(["id"], [5]))

    def _alter(self, request):
        if self.refuses and len(self.statements) >= (self.takes or 0):
            return [Error(self.refuses, "The database cannot be changed", severity=16)]
        self.statements.append(request.text)
        if scoped := re.fullmatch(r"ALTER DATABASE SCOPED CONFIGURATION SET (\w+) = (\w+)", request.text):
            self.scoped[scoped[1]] = {"ON": "1", "OFF": "0"}.get(scoped[2], scoped[2])
            return [Count(0)]
        name, value = re.fullmatch(
            r"ALTER DATABASE \[bank\] SET (\w+)(?: =)? (\w+)(?: SECONDS)? WITH NO_WAIT", request.text
        ).groups()
        column = COLUMNS[name]
        if column == "accelerated_recovery":
            self.adr = value == "ON"
            return [Count(0)]
        kind = type(OF_DATABASE[column])
        self.database[column] = value == "ON" if kind is bool else kind(value)
        return [Count(0)]

    @property
    def present(self) -> tuple:
        return dict(self.settings.in_use), dict(self.database), self.adr, dict(self.scoped)


@pytest.fixture
def there(script, monkeypatch) -> Server:
    monkeypatch.setattr(memory, "time", Clock())
    return Server(script)


@pytest.fixture
def chosen(engine, there):
    return engine.variant_settings["settings"]


WANTED = {
    PARALLELISM: "50", "DELAYED_DURABILITY": "FORCED", "COMPATIBILITY_LEVEL": "150", "target_recovery_time": "0",
    "QUERY_STORE": "off", "MAXDOP": "4", "LEGACY_CARDINALITY_ESTIMATION": "on", "ACCELERATED_DATABASE_RECOVERY": "on",
    "PAGE_VERIFY": "none",
}  # fmt: skip


def test_settings_are_made_read_back_and_given_back(engine, script, there, chosen):
    before = there.present
    with engine.hold():
        chosen.check(WANTED)
        assert there.present == before and not there.statements and not script.properties.values
        chosen.make(WANTED)
        assert there.settings.in_use[PARALLELISM] == 50 and there.settings.in_use[ADVANCED] == 0
        assert there.scoped == {"MAXDOP": "4", "LEGACY_CARDINALITY_ESTIMATION": "1", "PARAMETER_SNIFFING": "1"}
        changed = {"delayed_durability": "FORCED", "compatibility_level": 150, "target_recovery_time_s": 0}
        assert there.database == OF_DATABASE | changed | {"query_store": False, "page_verify": "NONE"}
        assert there.adr
        [note] = script.properties.values.values()
        assert [SERVER, PARALLELISM, "5"] in json.loads(note)["values"]
        chosen.make({"MAXDOP": "8"})
        assert there.scoped["MAXDOP"] == "8" and there.settings.in_use[PARALLELISM] == 5
        assert there.database == OF_DATABASE and not there.adr
    assert there.present == before and not script.properties.values


def test_a_record_has_them_by_the_names_that_it_always_had(engine, there, chosen):
    chosen.check(WANTED)
    assert chosen.recorded().names == {
        "DELAYED_DURABILITY": "database delayed durability",
        "COMPATIBILITY_LEVEL": "database compatibility level",
        "target_recovery_time": "database target recovery time s",
        "QUERY_STORE": "database query store",
        "PAGE_VERIFY": "database page verify",
        "ACCELERATED_DATABASE_RECOVERY": "database accelerated recovery",
        "MAXDOP": "database scoped MAXDOP",
        "LEGACY_CARDINALITY_ESTIMATION": "database scoped LEGACY_CARDINALITY_ESTIMATION",
    }
    recorded = engines.settings(engine)
    assert recorded.names == chosen.recorded().names
    assert {*recorded.names.values()} <= recorded.configuration.keys()
    assert recorded.configuration[PARALLELISM] == "5"


def test_after_a_kill_the_next_run_gives_back(engine, script, there, chosen):
    before = there.present
    engine.memory.cap(4 << 30)
    chosen.make(WANTED)
    assert script.properties.values and there.present != before
    with MssqlEngine(engine.spec()).hold():
        assert there.present == before
    assert not script.properties.values


OTHERS = {
    "ALLOW_SNAPSHOT_ISOLATION": "on", "AUTO_CREATE_STATISTICS": "off", "AUTO_UPDATE_STATISTICS": "off",
    "AUTO_UPDATE_STATISTICS_ASYNC": "on", "PARAMETER_SNIFFING": "off", DEGREE: "8",
}  # fmt: skip


def test_every_option_is_given_back_after_a_kill(engine, script, there, chosen):
    wanted = WANTED | OTHERS
    assert {name.upper() for name in wanted} >= DATABASE_OPTIONS.keys()
    before, changed = there.present, len(wanted)
    chosen.make(wanted)
    assert sum(_values(there.present)[name] != value for name, value in _values(before).items()) == changed
    with MssqlEngine(engine.spec()).hold():
        assert there.present == before
    assert not script.properties.values


@pytest.mark.parametrize("takes", range(len(WANTED | OTHERS) - 2))
def test_a_kill_between_two_changes_leaves_none(engine, script, there, chosen, takes):
    """All but two of the settings are made by ALTER DATABASE."""
    before = there.present
    there.refuses, there.takes = 596, takes  # the session is in the kill state
    with pytest.raises((CallFailed, StallmarkError)):
        chosen.make(WANTED | OTHERS)
    assert len(there.statements) == takes and script.properties.values
    there.refuses = 0
    with MssqlEngine(engine.spec()).hold():
        assert there.present == before
    assert not script.properties.values


def _values(present: tuple) -> dict:
    in_use, database, accelerated, scoped = present
    return in_use | database | {"accelerated": accelerated} | scoped


def test_what_cannot_be_given_back_is_said_with_the_statements(engine, script, there, chosen):
    chosen.make({"MAXDOP": "4", PARALLELISM: "50", "DELAYED_DURABILITY": "FORCED"})
    there.refuses = 5011
    with pytest.raises(NotGivenBack) as left:
        chosen.give_back()
    for statement in (
        "ALTER DATABASE [bank] SET DELAYED_DURABILITY = DISABLED WITH NO_WAIT",
        "ALTER DATABASE SCOPED CONFIGURATION SET MAXDOP = 0",
        f"EXEC sp_configure '{PARALLELISM}', 5; RECONFIGURE",
        "sp_dropextendedproperty @name = N'stallmark.settings'",
    ):
        assert statement in str(left.value)
    assert script.properties.values, "the next run tries again"


def test_a_database_that_others_are_in_is_left_alone(there, chosen, monkeypatch):
    monkeypatch.setattr(variant_settings, "ALONE_WITHIN_S", -1)
    there.refuses = 5070
    with pytest.raises(StallmarkError, match="Others are in the database bank, and PAGE_VERIFY"):
        chosen.make({"PAGE_VERIFY": "NONE"})


def test_what_somebody_else_has_not_yet_reconfigured_is_not_installed(there, chosen):
    there.settings.values[PARALLELISM] = 40
    chosen.make({"MAXDOP": "4"})  # which needs no RECONFIGURE
    with pytest.raises(StallmarkError, match=f"without RECONFIGURE.*setting `{DEGREE}`"):
        chosen.make({DEGREE: "4"})
    assert there.settings.in_use[PARALLELISM] == 5


TRACE_FLAGS = ("trace flag 1118", "-T4199", "TF 834", "4199", "traceflags")
REFUSED = [
    ({"cost threshold": "5"}, "not a setting of SQL Server.*did you mean cost threshold for parallelism"),
    ({"nothing like it": "5"}, "not a setting of SQL Server.*sp_configure"),
    ({PARALLELISM: "40000"}, "a whole number from 0 to 32,767"),
    ({PARALLELISM: "a lot"}, "a whole number from 0 to 32,767"),
    ({PARALLELISM: "5; SHUTDOWN"}, "a whole number from 0 to 32,767"),
    ({FILLFACTOR: "90"}, r'needs a restart.*--varied "fill factor'),
    ({CAP: "4096"}, "is what `buffer_pool` sets"),
    ({FLOOR: "0"}, "`buffer_pool` is held against"),
    ({ADVANCED: "1"}, "leave it out"),
    ({XP: "1"}, "decides what the server may do, not how fast it is"),
    ({"READ_COMMITTED_SNAPSHOT": "on"}, "is what `row_versioning` sets"),
    ({"recovery": "SIMPLE"}, "ends the chain of log backups"),
    ({"DELAYED_DURABILITY": "on"}, "one of DISABLED, ALLOWED, FORCED"),
    ({"PAGE_VERIFY": "CHECKSUM] WITH"}, "one of CHECKSUM"),
    ({"COMPATIBILITY_LEVEL": "100"}, "is too low"),
    ({"COMPATIBILITY_LEVEL": "170"}, "write 130 to 160"),
    ({"COMPATIBILITY_LEVEL": "newest"}, "whole number"),
    ({"MAXDOP": "all"}, "is not a value"),
    ({"LEGACY_CARDINALITY_ESTIMATION": "ON; DROP"}, "is not a value"),
    *(({name: "on"}, "changes no trace flags") for name in TRACE_FLAGS),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "why"), REFUSED)
def test_what_is_refused_leaves_the_server_alone(there, chosen, script, wanted, why):
    before = there.present
    with pytest.raises(StallmarkError, match=why):
        chosen.check({"MAXDOP": "4"} | wanted)
    assert there.present == before and not there.statements and not script.properties.values


@pytest.mark.parametrize(
    ("at", "wanted", "right"),
    [
        (0, {PARALLELISM: "50"}, "ALTER SETTINGS"),
        (1, {"DELAYED_DURABILITY": "FORCED"}, "ALTER on the database"),
        (2, {"MAXDOP": "4"}, "ALTER ANY DATABASE SCOPED CONFIGURATION"),
    ],
)
def test_a_right_that_the_login_lacks_is_named(there, chosen, at, wanted, right):
    there.may[at] = 0
    with pytest.raises(StallmarkError, match=right):
        chosen.check(wanted)
    for other in ({PARALLELISM: "50"}, {"DELAYED_DURABILITY": "FORCED"}, {"MAXDOP": "4"}):
        if other != wanted:
            chosen.check(other)


NOTE = {"database": "my db", "advanced": 0}
STATEMENTS = [
    *((OPTION, name, value) for name, option in DATABASE_OPTIONS.items() for value in option.values or ("150",)),
    *((SCOPED, name, value) for name, value in (("MAXDOP", "4"), ("LEGACY_CARDINALITY_ESTIMATION", "ON"))),
    (SERVER, PARALLELISM, "50"),
]


@pytest.mark.microsoft_parser
@pytest.mark.parametrize(("kind", "name", "value"), STATEMENTS)
def test_every_statement_is_t_sql(kind, name, value):
    assert not any(map(parser.errors, chosen_settings._statements(kind, name, value, NOTE)))


@given(st.integers(100, 99999))
def test_no_number_alone_is_a_setting(number):
    assert chosen_settings._TRACE_FLAG.fullmatch(str(number))


@pytest.mark.parametrize("name", [PARALLELISM, *DATABASE_OPTIONS, "MAXDOP"])
def test_a_setting_is_no_trace_flag(name):
    assert not chosen_settings._TRACE_FLAG.fullmatch(name)

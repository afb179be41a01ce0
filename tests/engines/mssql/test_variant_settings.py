"""Row versions and Resource Governor as a variant has them: made, and given back also after a kill."""

from collections.abc import Callable

import pytest
from support.mssql_server import EXPRESS, MANAGED_INSTANCE, STANDARD, rows
from support.tds.answers import Count, Error, Rows
from support.tds.datatypes import nvarchar
from support.tds.tokens import Column

from stallmark.engines.mssql import variant_settings
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import NotGivenBack, StallmarkError


class Database:
    """READ_COMMITTED_SNAPSHOT and Resource Governor as they stand; `statements` are those that changed it."""

    def __init__(self, script):
        self.on, self.enabled, self.classifier, self.pending = False, False, 0, False
        self.refuses: Error | None = None  # to change the database
        self.statements: list[str] = []
        script.sql("is_read_committed_snapshot_on", lambda _: [rows(["name", "on"], ["bank", self.on])])
        script.sql("FROM sys.resource_governor_configuration", lambda _: [
            rows(["on", "function", "pending"], [self.enabled, self.classifier, self.pending])
        ])  # fmt: skip
        script.sql("sys.extended_properties", Rows([Column("value", nvarchar(3750))], []))
        script.sql("sp_addextendedproperty", Error(15247, "User does not have permission.", severity=16))
        script.sql("^ALTER DATABASE", self._set)
        script.sql("RESOURCE|WORKLOAD GROUP|stallmark_classifier", self._changed)
        script.sql("HAS_PERMS_BY_NAME", rows(["may"], [1]))

    def _set(self, asked):
        if self.refuses:
            return [self.refuses]
        self.on = "SNAPSHOT ON" in asked.text
        return self._changed(asked)

    def _changed(self, asked):
        self.statements.append(asked.text)
        return [Count(0)]


@pytest.fixture
def database(script) -> Database:
    return Database(script)


@pytest.fixture
def notes(tmp_path) -> Callable[[], list[str]]:
    """Return what is noted to be given back; on this machine, as this login may not write into master."""
    return lambda: [path.name for path in (tmp_path / "changed-settings").glob("*")]


def test_row_versions_are_turned_on_for_a_variant_and_off_again(engine, database, notes, tmp_path):
    with engine.hold():
        engine.variant_settings["row_versioning"].make(True)
        assert database.on and ["row_versioning" in name for name in notes()] == [True]
        folder = tmp_path / "changed-settings"
        assert [path.stat().st_mode & 0o777 for path in (folder, *folder.iterdir())] == [0o700, 0o600]
        engine.variant_settings["row_versioning"].make(False)
        engine.variant_settings["row_versioning"].make(True)
    assert not database.on and not notes()
    assert database.statements[0] == "ALTER DATABASE [bank] SET READ_COMMITTED_SNAPSHOT ON WITH NO_WAIT"


def test_what_is_so_already_is_not_touched(engine, database, notes):
    engine.variant_settings["row_versioning"].make(False)
    engine.variant_settings["row_versioning"].give_back()
    assert not database.statements and not notes()


def test_a_killed_run_is_put_right_by_the_next(engine, database, notes):
    engine.variant_settings["row_versioning"].make(True)
    with MssqlEngine(engine.spec()).hold():
        assert not database.on and not notes()


def test_a_database_that_others_are_in_is_left_alone(engine, database, notes, monkeypatch):
    """Error 5070: "Database state cannot be changed while other users are using the database"."""
    monkeypatch.setattr(variant_settings, "ALONE_WITHIN_S", -1)
    database.refuses = Error(5070, "Database state cannot be changed while others use it", severity=16)
    with pytest.raises(StallmarkError, match="Others are in the database bank"):
        engine.variant_settings["row_versioning"].make(True)


def test_what_cannot_be_given_back_is_said_with_the_statement(engine, database, notes):
    engine.variant_settings["row_versioning"].make(True)
    database.refuses = Error(5011, "User does not have permission to alter database", severity=16)
    with pytest.raises(NotGivenBack, match=r"ALTER DATABASE \[bank\] SET READ_COMMITTED_SNAPSHOT OFF"):
        engine.variant_settings["row_versioning"].give_back()
    assert notes(), "the next run tries again"


POOL = [("iops_per_volume", 500), ("cpu_percent", None), ("grants_percent", 25)]


def test_a_pool_is_made_for_users_and_taken_away(engine, database, notes):
    with engine.hold():
        engine.variant_settings["resource_pool"].make(POOL)
        made = "\n".join(database.statements)
    assert "RESOURCE POOL stallmark WITH (MAX_IOPS_PER_VOLUME = 500, MAX_MEMORY_PERCENT = 25)" in made
    assert "APP_NAME() LIKE N'stallmark-user%'" in made and made.endswith("ALTER RESOURCE GOVERNOR RECONFIGURE")
    drop, disable = database.statements[-2:]
    assert "DROP RESOURCE POOL stallmark" in drop and disable == "ALTER RESOURCE GOVERNOR DISABLE"
    assert not notes()


def test_a_governor_that_was_on_stays_on(engine, database, notes):
    database.enabled = True
    with engine.hold():
        engine.variant_settings["resource_pool"].make(POOL)
    assert "ALTER RESOURCE GOVERNOR DISABLE" not in database.statements


@pytest.mark.parametrize(
    ("what", "value", "why"), [("classifier", 77, "classifier function"), ("pending", True, "not")]
)
def test_a_server_that_somebody_has_divided_is_left_alone(engine, database, notes, what, value, why):
    setattr(database, what, value)
    with pytest.raises(StallmarkError, match=why):
        engine.variant_settings["resource_pool"].make(POOL)
    assert not database.statements and not notes()


@pytest.mark.parametrize(
    ("says", "has_governor"),
    [
        ({}, True),
        ({"edition": STANDARD}, False),
        ({"edition": STANDARD, "version": "17.0.1000.7"}, True),  # from 2025 on
        ({"edition": EXPRESS}, False),
        ({"edition": MANAGED_INSTANCE, "version": "12.0.2000.8"}, True),
    ],
)
def test_which_editions_have_a_governor(new_server, says, has_governor):
    """As in "Editions and supported features of SQL Server", 2017 to 2025."""
    server = new_server(**says)
    server.script.sql("HAS_PERMS_BY_NAME", rows(["may"], [1]))
    assert (server.engine().variant_settings["resource_pool"].refusal() is None) is has_governor

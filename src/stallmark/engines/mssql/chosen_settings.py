"""The settings of a SQL Server that a variant chooses: options of the server, of the database, and scoped ones."""

import difflib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from stallmark.engines.abilities import Recorded, VariantSetting
from stallmark.engines.mssql import memory, odbc, settings
from stallmark.engines.mssql.server import LEAST_LEVEL, SQL_SERVER_2019, WHY_LEAST_LEVEL, Server
from stallmark.engines.mssql.variant_settings import MssqlJournal, alter_database
from stallmark.errors import StallmarkError

_SWITCH = {"on": "ON", "off": "OFF", "true": "ON", "false": "OFF", "1": "ON", "0": "OFF"}


_SPACED = "ALTER DATABASE {database} SET {name} {value} WITH NO_WAIT"
_EQUALS = "ALTER DATABASE {database} SET {name} = {value} WITH NO_WAIT"
_SECONDS = "ALTER DATABASE {database} SET TARGET_RECOVERY_TIME = {value} SECONDS WITH NO_WAIT"


class DatabaseOption(NamedTuple):
    """An option of ALTER DATABASE … SET. `recorded`: its name in a record, behind "database"; `values`: its words, or
    none if it is a number; `statement`: how it is set."""

    recorded: str
    values: tuple[str, ...] = ("ON", "OFF")
    statement: str = _SPACED
    part: str = "settings_database"


DATABASE_OPTIONS = {
    "ACCELERATED_DATABASE_RECOVERY": DatabaseOption(
        "accelerated recovery", statement=_EQUALS, part="settings_accelerated.15"
    ),
    "ALLOW_SNAPSHOT_ISOLATION": DatabaseOption("snapshot isolation"),
    "AUTO_CREATE_STATISTICS": DatabaseOption("auto create statistics"),
    "AUTO_UPDATE_STATISTICS": DatabaseOption("auto update statistics"),
    "AUTO_UPDATE_STATISTICS_ASYNC": DatabaseOption("auto update statistics later"),
    "COMPATIBILITY_LEVEL": DatabaseOption("compatibility level", (), _EQUALS),
    "DELAYED_DURABILITY": DatabaseOption("delayed durability", ("DISABLED", "ALLOWED", "FORCED"), _EQUALS),
    "PAGE_VERIFY": DatabaseOption("page verify", ("CHECKSUM", "TORN_PAGE_DETECTION", "NONE")),
    "QUERY_STORE": DatabaseOption("query store", statement=_EQUALS),
    "TARGET_RECOVERY_TIME": DatabaseOption("target recovery time s", (), _SECONDS),
}
RESERVED = {
    "max server memory (MB)": "is what `buffer_pool` sets: write that",
    "min server memory (MB)": "is what `buffer_pool` is held against: set it yourself",
    "show advanced options": "is shown and hidden again by Stallmark itself: leave it out",
    "READ_COMMITTED_SNAPSHOT": "is what `row_versioning` sets: write that",
    "RECOVERY": "ends the chain of log backups, which no setting gives back: set it yourself",
}
_TRACE_FLAG = re.compile(r"(trace[ _]?flags?|tf|-t|dbcc traceon)?\s*\(?\d{3,5}(,\s*-1)?\)?|trace[ _]?flags?|-t", re.I)
_NUMBERS = ("MAXDOP", "PAUSED_RESUMABLE_INDEX_ABORT_DURATION_MINUTES")
"""Scoped configurations that are numbers: others are switches, or words."""
_WORD = re.compile(r"\w{1,60}")

_OPTIONS = """\
SELECT name, CAST(minimum AS bigint) AS minimum, CAST(maximum AS bigint) AS maximum, is_dynamic
  FROM sys.configurations
"""
_PERMITTED = """\
SELECT HAS_PERMS_BY_NAME(NULL, NULL, N'ALTER SETTINGS') AS server,
       HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), N'DATABASE', N'ALTER') AS options,
       HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), N'DATABASE', N'ALTER ANY DATABASE SCOPED CONFIGURATION') AS scoped
"""
_SET_SCOPED = "ALTER DATABASE SCOPED CONFIGURATION SET {name} = {value}"
_SCOPED = "database scoped "

SERVER, OPTION, SCOPED = "server", "option", "scoped"


_RIGHTS = {
    SERVER: "the right ALTER SETTINGS on the server",
    OPTION: "the right ALTER on the database",
    SCOPED: "the right ALTER ANY DATABASE SCOPED CONFIGURATION in the database",
}


class Choice(NamedTuple):
    """A setting as the server calls it, and the value in its words. `recorded`: its name in a record."""

    kind: str
    name: str
    value: str
    recorded: str


class MssqlSettings(VariantSetting):
    def __init__(self, server: Server):
        self._server = server
        self._chosen: dict[str, Choice] = {}

    def refusal(self) -> str | None:
        if self._server.is_babelfish:
            return f"{self._server.identity().product} has those of its PostgreSQL: set them there yourself"
        return None

    def check(self, wanted: Mapping[str, str]) -> None:
        choices = self._choices(wanted)
        [permitted] = self._server.query(_PERMITTED)
        may = dict(zip((SERVER, OPTION, SCOPED), permitted, strict=True))
        for name, choice in choices.items():
            if choice.kind == SERVER and (reason := self._server.service.no_cap_reason):
                raise StallmarkError(f"`{name}` cannot be set with sp_configure: {reason}.")
            if not may[choice.kind]:
                raise StallmarkError(
                    f"`{name}` may not be set by this login, which needs {_RIGHTS[choice.kind]}: GRANT it."
                )
        self._chosen |= choices

    def recorded(self) -> Recorded:
        names = {name: choice.recorded for name, choice in self._chosen.items() if choice.recorded != name}
        return Recorded(names=names)

    def make(self, wanted: Mapping[str, str]) -> None:
        choices = self._choices(wanted)
        self._note(self._chosen | choices)
        self.was_made = True
        values = {(choice.kind, choice.name): choice.value for choice in choices.values()}
        self._put(self._values_before() | values)
        now = self._present(self._server)
        for name, choice in choices.items():
            if now[choice.kind, choice.name] != choice.value:
                raise StallmarkError(
                    f"`{name}` was set to {choice.value} and the server goes on with "
                    f"{now[choice.kind, choice.name]}: see its error log."
                )

    def give_back(self) -> None:
        journal = self._journal()
        if journal.read():
            with journal.restored("Settings of the server", self._statements_before):
                self._put(self._values_before())

    def _choices(self, wanted: Mapping[str, str]) -> dict[str, Choice]:
        """Return the settings that a scenario names. Raise StallmarkError for one that is not, or not so."""
        scoped = {name.removeprefix(_SCOPED) for name in self._part("settings_scoped")}
        options = {row[0]: row[1:] for row in self._server.query(_OPTIONS)}
        return {name: self._choice(name, value, scoped, options) for name, value in wanted.items()}

    def _choice(self, name: str, value: str, scoped: set[str], options: Mapping[str, tuple]) -> Choice:
        known = {
            setting.lower(): (kind, setting)
            for kind, names in ((SERVER, options), (SCOPED, scoped), (OPTION, DATABASE_OPTIONS), ("", RESERVED))
            for setting in names
        }
        if _TRACE_FLAG.fullmatch(name.strip()):
            raise StallmarkError(
                f"`{name}`: Stallmark changes no trace flags: start the server with -T for one experiment, and compare "
                'it with one without by `stallmark compare --varied "trace flags"`.'
            )
        if name.lower() not in known:
            near = difflib.get_close_matches(name.lower(), known, 1)
            hint = f": did you mean {known[near[0]][1]}?" if near else ": `EXEC sp_configure` lists its options."
            raise StallmarkError(f"`{name}` is not a setting of {self._server.identity()} that can be chosen{hint}")
        kind, own = known[name.lower()]
        if reason := RESERVED.get(own):
            raise StallmarkError(f"`{name}` {reason}.")
        if kind == SERVER:
            return Choice(kind, own, self._number(name, value, *options[own]), own)
        if kind == OPTION:
            return Choice(kind, own, self._word(own, value), f"database {DATABASE_OPTIONS[own].recorded}")
        word = value if own in _NUMBERS else _SWITCH.get(value.lower(), value)
        if not _WORD.fullmatch(word) or (own in _NUMBERS and not word.isdecimal()):
            raise StallmarkError(f"`{name}: {value}` is not a value of it: write on, off, a number or one word.")
        return Choice(kind, own, word, f"{_SCOPED}{own}")

    def _number(self, name: str, value: str, least: int, most: int, is_dynamic: bool) -> str:
        if name.lower() not in {known.lower() for known in self._part("settings")}:
            raise StallmarkError(f"`{name}` decides what the server may do, not how fast it is: set it yourself.")
        if not is_dynamic:
            raise StallmarkError(
                f"`{name}` needs a restart, which a connection cannot do: set it on the server yourself, make an "
                f'experiment of each value, and compare them by `stallmark compare --varied "{name}"`.'
            )
        number = {"on": "1", "off": "0"}.get(value.lower(), value)
        if not re.fullmatch(r"-?\d{1,18}", number) or not least <= int(number) <= most:
            raise StallmarkError(f"`{name}: {value}` is not possible: write a whole number from {least:,} to {most:,}.")
        return str(int(number))

    def _word(self, name: str, value: str) -> str:
        option = DATABASE_OPTIONS[name]
        if getattr(self._server, "by_workload", None):
            raise StallmarkError(f"`{name}` is of one database, and the workloads have one each: leave it out.")
        if option.part != "settings_database" and not self._server.has_version(SQL_SERVER_2019):
            raise StallmarkError(f"`{name}` is in SQL Server from 2019 on: leave it out.")
        if not option.values:
            number = value.lower().removesuffix("s").removesuffix("seconds").strip()
            if not number.isdecimal():
                raise StallmarkError(f"`{name}: {value}` is not possible: write a whole number.")
            if name == "COMPATIBILITY_LEVEL":
                self._refuse_level(int(number))
            return str(int(number))
        word = value.upper() if value.upper() in option.values else _SWITCH.get(value.lower(), "")
        if word not in option.values:
            raise StallmarkError(f"`{name}: {value}` is not possible: write one of {', '.join(option.values)}.")
        return word

    def _refuse_level(self, level: int) -> None:
        most = 10 * self._server.identity().version[0]
        if level < LEAST_LEVEL:
            raise StallmarkError(f"`COMPATIBILITY_LEVEL: {level}` is too low: {WHY_LEAST_LEVEL}.")
        if level % 10 or level > most:
            raise StallmarkError(f"`COMPATIBILITY_LEVEL: {level}` is not one here: write {LEAST_LEVEL} to {most}.")

    def _present(self, database: Server | None) -> dict[tuple[str, str], str]:
        """Return the values that the server and a database have now, in the words in which they are set."""
        values = {
            (SERVER, name): f"{option.value} ({option.in_use} in use)" if option.is_pending else str(option.value)
            for name, option in memory.options(self._server).items()
        }
        if database is None:
            return values
        parts = {option.part for option in DATABASE_OPTIONS.values() if settings.is_known(database, option.part)}
        known = {name: value for part in parts for name, value in settings.read_part(database, part).items()}
        for name, option in DATABASE_OPTIONS.items():
            if (value := known.get(f"database {option.recorded}")) is not None:
                values[OPTION, name] = _in_words(value) if option.values else value
        for recorded, value in settings.read_part(database, "settings_scoped").items():
            name = recorded.removeprefix(_SCOPED)
            values[SCOPED, name] = value if name in _NUMBERS else _in_words(value)
        return values

    def _part(self, part: str) -> dict[str, str]:
        return settings.read_part(self._server, part)

    def _note(self, choices: Mapping[str, Choice]) -> None:
        """Note the values of settings before they are changed, unless they are noted already."""
        # A killed run's note has the original values; those of now may be its changes.
        if self._journal().read():
            return
        present = self._present(self._server)
        keys = sorted({(choice.kind, choice.name) for choice in choices.values()})
        if options := [name for kind, name in keys if kind == SERVER]:
            memory.refuse_pending(memory.options(self._server), (), options[0])
        self._journal().note(
            {
                "database": self._server.database_name(),
                "advanced": memory.advanced_before(self._server),
                "values": [[*key, present[key]] for key in keys],
            }
        )

    def _values_before(self) -> dict[tuple[str, str], str]:
        return {(kind, name): value for kind, name, value in self._journal().read()["values"]}

    def _put(self, values: Mapping[tuple[str, str], str]) -> None:
        """Set what differs from what the server has. Those of a database that somebody dropped are gone with it."""
        note = self._journal().read()
        is_there = self._server.has_database(note["database"])
        database = self._server.on_database(note["database"]) if is_there else None
        present = self._present(database)
        changed = {key: value for key, value in values.items() if key in present and present[key] != value}
        if any(kind == SERVER for kind, _ in changed):
            ours = {name for kind, name in values if kind == SERVER}
            memory.refuse_pending(memory.options(self._server), ours, min(ours))
        for (kind, name), value in changed.items():
            for statement in _statements(kind, name, value, note):
                if kind == OPTION:
                    alter_database(self._server, note["database"], statement, name)
                else:
                    (database or self._server).execute(statement)

    def _statements_before(self) -> str:
        note, values = self._journal().read(), self._values_before().items()
        return "; ".join(text for (kind, name), value in values for text in _statements(kind, name, value, note))

    def _journal(self) -> MssqlJournal:
        return MssqlJournal(self._server, "settings")


def _statements(kind: str, name: str, value: str, note: Mapping[str, Any]) -> list[str]:
    if kind == SERVER:
        return memory.statements(name, int(value), note["advanced"])
    if kind == SCOPED:
        return [_SET_SCOPED.format(name=name, value=value)]
    database = odbc.name(note["database"])
    return [DATABASE_OPTIONS[name].statement.format(database=database, name=name, value=value)]


def _in_words(value: str) -> str:
    """Return a value of the catalogue as ALTER DATABASE takes it."""
    return _SWITCH.get(value.lower(), value)

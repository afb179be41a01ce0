"""Try on a server all that Stallmark does, in a few minutes, and say what worked: to be pasted into an issue."""

import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import stallmark
from stallmark import format
from stallmark.cli.common import FAILED
from stallmark.engines.abilities import Availability
from stallmark.engines.base import Engine
from stallmark.experiment.progress import Show
from stallmark.experiment.target import Target
from stallmark.lab.selftest.check import SelftestResult, attempt
from stallmark.lab.selftest.database import (
    BROKERAGE,
    CHOICES,
    refuse_sessions_of_others,
    refuse_what_is_not_ours,
    remove,
)
from stallmark.lab.selftest.trial import Trial
from stallmark.record import devices
from stallmark.redact import Redactor
from stallmark.stopping import later

_BANNER = {"mssql": "SELECT @@VERSION", "postgresql": "SELECT version()"}
_LOGIN = {"mssql": "SELECT CAST(ORIGINAL_LOGIN() AS nvarchar(128)) AS login", "postgresql": "SELECT session_user"}


@dataclass(frozen=True)
class Selftest:
    """`facts` are what decides a result; neither they nor the checks name a host, a user or a folder."""

    facts: Mapping[str, str]
    checks: list[SelftestResult]
    record: Path | None

    @property
    def exit_code(self) -> int:
        """The gravest: data that is wrong, before what failed, before a run that is not whole."""
        return min((check.exit_code for check in self.checks if check.exit_code), default=0)


def selftest(target: Target, runs: Path, show: Show, *, seconds: float, keep: bool, may_cap_memory: bool) -> Selftest:
    """Run every check, for each workload. The database must exist and be empty, or be what an earlier selftest left.
    Users are driven for `seconds` on the last workload, and for less on those before. The memory of a server that
    others may use is capped only if it `may` be.

    Afterwards everything but the run record is removed, unless it is to be kept; also after Ctrl-C. Raises
    StallmarkError when there is no connection, the database holds anything else, or others are in it and the target may
    not be shared.
    """
    with replace(target, may_share=True).engine(BROKERAGE) as engine:
        refuse_what_is_not_ours(engine)  # whatever --shared allows
        if not target.may_share:
            refuse_sessions_of_others(engine)
        [(login,)] = engine.query(_LOGIN[engine.dialect])
        redact = _redactor(engine, login)
        shorter = [max(1, seconds // 3)] * (len(CHOICES) - 1)
        trials = [
            Trial(engine, choice, each, choice is CHOICES[0], may_cap_memory)
            for choice, each in zip(CHOICES, [*shorter, seconds], strict=True)
        ]
        try:
            facts = _facts(engine)
            found = _examined(engine) + [
                replace(check, what=f"{trial.choice.name}: {check.what}")
                for trial in trials
                for check in trial.checks(runs, show)
            ]
        except BaseException:
            if not keep:
                with later():
                    show.say(remove(engine, target, show).said)
            raise
        if not keep:
            with later():
                found.append(remove(engine, target, show))
    checked = [replace(check, said=redact(check.said)) for check in found]
    records = [record.folder for trial in trials for record in trial.records]
    return Selftest(facts, checked, records[-1] if records else None)


def _examined(engine: Engine) -> list[SelftestResult]:
    """Return what the doctor says of driver, bulk copy, edition and rights: what else is of no use without it."""
    states: dict[Availability, Literal["works", "off", "failed"]] = {
        "ok": "works",
        "limited": "off",
        "missing": "failed",
    }
    checks: list[SelftestResult] = []

    def examine() -> str:
        for one in engine.examine():
            checks.append(
                SelftestResult(one.what, states[one.state], one.sentence, FAILED if one.state == "missing" else 0)
            )
        return "all was told"

    whole = attempt("driver, edition and rights", examine)
    return checks if whole.state == "works" else [*checks, whole]


def _redactor(engine: Engine, user: str) -> Redactor:
    """Return a redactor; `user` as the server knows it: the URL may leave it to Windows or Kerberos."""
    names = {platform.node(): "<this machine>", str(Path.home()): "~"}
    if engine.is_local:
        return Redactor(names, [user], None)
    login = engine.login()
    return Redactor(names | {login.host: "<host>"}, [login.user, user], login.password)


def _facts(engine: Engine) -> dict[str, str]:
    [(banner,)] = engine.query(_BANNER[engine.dialect])
    here = devices.machine_facts()
    memory = format.size(here.memory_bytes or 0)
    return {
        "stallmark": stallmark.__version__,
        "server": " ".join(banner.split()),
        "version": str(engine.identity()),
        "edition": str(getattr(engine, "edition", "")) or "-",
        "driver": str(getattr(engine, "driver", "libpq")),
        "driven from": f"{here.distribution}, {here.system}, {platform.machine()}, Python {here.python}, "
        f"{here.cores} cores, {memory}",
    }

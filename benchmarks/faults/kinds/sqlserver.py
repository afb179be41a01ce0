"""SQL Server: its memory is given back however a run that has capped it ends. A responder stands in for the server."""

import os
import signal
import subprocess
import sys
import time

from benchmarks.faults import checks
from benchmarks.faults.round import Round, Skipped
from benchmarks.faults.works import START, draw
from support.mssql_server import says_it_is
from support.mssql_settings import Settings
from support.remote import free_port
from support.tds import odbc
from support.tds.answers import Error, Rows
from support.tds.datatypes import INT, nvarchar
from support.tds.responder import Responder
from support.tds.script import Script
from support.tds.tokens import Column

from stallmark.engines.mssql.engine import MssqlEngine

RUN = """
import sys, time
from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.stopping import StopSignal, deafen, listen
listen()
try:
    engine = MssqlEngine(sys.argv[1])
    with engine.hold() as check:
        for size in (4, 6, 5):
            engine.memory.cap(size << 30)
            print("capped", flush=True)
            time.sleep(0.5)
            check()
except StopSignal as stopped:
    print(stopped, *getattr(stopped, "__notes__", ()), file=sys.stderr)
    sys.exit(stopped.exit_code)
finally:
    deafen()
"""
"""The part of a run that changes settings, with its signals: a script answers too little for a whole one."""


UP_S = 40.0
"""A server takes about so long to start, once its image is here."""


def memory(round: Round) -> None:
    """End what has capped the memory of a server, at any moment; the next one on that server gives it back."""
    if why := odbc.missing():
        raise Skipped(why)
    script, where = _script(), round.rng.choice(["on the server", "on this machine"])
    if where == "on this machine":
        script.sql("sp_addextendedproperty", Error(15247, "User does not have permission.", severity=16))
    settings = Settings(script)
    before, in_use = dict(settings.values), dict(settings.in_use)
    os.environ["STALLMARK_STATE"] = str(round.folder / "state")
    how = round.rng.choice(["KILL", "INT", "TERM", "STOP"])
    share = round.rng.random()
    with Responder(script, encryption="none") as server:
        url = f"mssql://tester:secret@127.0.0.1:{server.port}/bank?Encrypt=no"
        process = subprocess.Popen([sys.executable, "-c", RUN, url], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        if begun := round.rng.random() < 0.8:
            process.stdout.readline()  # type: ignore[union-attr]  # the first cap is made
        time.sleep(share * 2.0)
        process.send_signal(getattr(signal, f"SIG{how}"))
        if how == "STOP":
            time.sleep(1.0)
            process.send_signal(signal.SIGCONT)
        out, err = process.communicate(timeout=60)
        round.did.append(f"SIG{how} at {share:.0%}, journal {where}, {begun + out.count(b'capped')} caps")
        print(err.decode())  # for the log of a round that failed
        if begun or out:  # before it is no run yet, and has the signals of any program
            round.found(checks.said(process.returncode, err.decode() + " "))
        codes = {"KILL": (-9, 0), "INT": (130, 0), "TERM": (143, 0), "STOP": (0,)}[how]
        if process.returncode not in codes and (begun or out):
            round.problems.append(f"it ended with {process.returncode} after SIG{how}")
        if how != "KILL":
            round.found(checks.settings(settings.values, before), "at the end")
        with MssqlEngine(url).hold():
            round.found(checks.settings(settings.values, before), "as the next one begins")
        round.found(checks.settings(settings.in_use, in_use), "in use")
        if script.properties.values:
            round.problems.append(f"a journal is left on the server: {script.properties.values}")
    if kept := [path for path in (round.folder / "state").rglob("*.json")]:
        round.problems.append(f"a journal is left on this machine: {kept[0].name}")
    round.gone()
    round.left()


def server_up(round: Round) -> None:
    """Disturb `stallmark server up`; the next one works: with what the first has left, or with its data."""
    if subprocess.run(["docker", "info"], capture_output=True).returncode or os.environ.get("ACCEPT_EULA") != "Y":
        raise Skipped("`server up` needs a container engine that answers, and ACCEPT_EULA=Y")
    name = f"stallmark-faults-{os.getpid()}-{round.rng.randrange(10**6)}"
    up = ("server", "up", "--accept-eula", "--name", name, "--port", str(free_port()))
    strike = draw(round.rng, {"command": "KILL INT STOP TERM", "group": "INT"}, (START._replace(seconds=UP_S),))
    try:
        code, command, hit = round.struck(strike, *up)
        if hit:
            round.found(checks.reason(strike.victim, strike.how, code, command.text, None))
        if code == 0:
            round.next("server", "down", name)
        round.next(*up)
    finally:
        round.next("server", "down", name, "--remove-data")
    round.found(checks.left(containers=_named(name, "ps", "--all"), volumes=_named(name, "volume", "ls")))
    round.left()


def _named(name: str, *list_: str) -> list[str]:
    """Return the containers or the volumes of a server, as the container engine lists them."""
    command = ["docker", *list_, "--quiet", "--filter", f"name={name}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def _script() -> Script:
    """Return what a server answers to a run that holds it, beside its settings."""
    script = Script(databases=["bank", "master"])
    says_it_is(script)
    script.sql("SELECT @@SPID", Rows([Column("spid", INT)], [(57,)]))
    script.sql("'ServerName'", Rows([Column("name", nvarchar(128))], [("DB\\PROD",)]))
    script.sql(r"@Resource = 'stallmark\.run'", Rows([Column("taken", INT)], [(0,)]))
    script.sql("APPLOCK_MODE", Rows([Column("mode", nvarchar(32))], [("Exclusive",)]))
    return script

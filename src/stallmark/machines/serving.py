"""`stallmark worker`: this machine executes a share of the load of runs that are started elsewhere."""

import select
import socket

import msgspec

import stallmark
from stallmark.driver.channel import Channel, Closed, start_child
from stallmark.driver.load import RunFacts
from stallmark.driver.messages import (
    Begun,
    Connected,
    ExecutorDied,
    Finished,
    Join,
    Joined,
    MachineFacts,
    MasterLost,
    NotUnderstood,
    Quit,
    Refused,
    WorkerOrder,
)
from stallmark.driver.run_state import not_understood_notice
from stallmark.engines import open_engine
from stallmark.engines.base import Engine
from stallmark.engines.reachability import unreachable_reason
from stallmark.errors import StallmarkError, as_sentence
from stallmark.experiment.progress import Show
from stallmark.loaders import ledger
from stallmark.processes import exit_clause, kill, wait_for_exit_code
from stallmark.record import devices
from stallmark.stopping import hearing, later

# A load driver whose channel has closed is about to exit.
EXIT_WITHIN_S = 5
# Longer than the 12 s that executors give their users.
FAREWELL_S = 20


def facts_of(engine: Engine) -> RunFacts:
    """Return the facts that all machines of a run must agree on. They are read for each run, because the database may
    change between two.
    """
    facts = RunFacts(stallmark.__version__, str(engine.identity()))
    # With several databases, the names arrive later, with the run.
    if not engine.by_workload and (entry := ledger.read(engine)):
        data = entry.identity
        facts = msgspec.structs.replace(
            facts,
            workload=f"{data.workload} (version {data.version})",
            scale=dict(data.scale),
            options=dict(data.options),
            seed=data.seed,
            bytes_as_loaded=entry.loaded_bytes,
        )
    return facts


def serve(server: str, host: str, port: int, show: Show) -> None:
    """Serve run after run on the server of this URL until stopped. Raises StallmarkError when a master refuses
    this machine."""
    engine = open_engine(server)
    # Raises now if the server is unreachable, not when the run begins.
    engine.identity()
    show.say(f"Waiting for runs of {host}:{port}. Ctrl-C ends this.")
    if reason := hearing(lambda: unreachable_reason(host, port)):
        show.say(f"No run is there yet: {reason}. Trying on.")
    while True:
        process, channel = start_child("stallmark.machines.worker")
        try:
            channel.send(WorkerOrder(host, port, engine.spec()))
            _serve_one(channel, engine, show)
        except Closed:
            code = wait_for_exit_code(process, EXIT_WITHIN_S)
            above = "; its message stands above" if (code or 0) > 0 else ""
            raise StallmarkError(f"The load driver {exit_clause(code)}{above}.") from None
        finally:
            with later():
                _end(channel)
                kill(process)
                channel.close()


def _serve_one(channel: Channel, engine: Engine, show: Show) -> None:
    """Serve one run to its end."""
    begun = False
    while True:
        match channel.receive():
            case Connected():
                channel.send(
                    Join(socket.gethostname(), facts_of(engine), MachineFacts(**vars(devices.machine_facts())))
                )
            case Refused(_, reason):
                raise StallmarkError(f"The run refused this machine: {reason}.")
            case ExecutorDied(pid=pid, code=code, reason=reason):
                above = "; its message stands above" if (code or 0) > 0 else ""
                how = f"could not begin: {reason}" if reason else f"{exit_clause(code)}{above}"
                raise StallmarkError(as_sentence(f"The load could not start here: executor process {pid} {how}"))
            case Joined(number, machines):
                show.say(f"This is load machine {number} of {machines}.")
            case Begun():
                begun = True
                show.say("The run has begun.")
            case NotUnderstood() as message:
                show.say(not_understood_notice(message))
            # Before the beginning it is no loss: the master only waits for machines.
            case MasterLost() if begun:
                show.say("The master went away: the load here was ended.")
            case Finished():
                if begun:
                    show.say("The run is over; waiting for the next one.")
                return


def _end(channel: Channel) -> None:
    """End the load driver: let users finish while a message arrives at least every FAREWELL_S."""
    try:
        channel.send(Quit())
        while select.select([channel], [], [], FAREWELL_S)[0]:
            if isinstance(channel.receive(), Finished):
                return
    except Closed:
        pass

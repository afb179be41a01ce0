"""`stallmark worker`: this machine executes a share of the load of runs that are started elsewhere."""

import select
import socket
from typing import Any

import stallmark
from stallmark.driver.messages import Channel, Closed
from stallmark.driver.subprocesses import start_child
from stallmark.engines import open_engine
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError
from stallmark.experiment.progress import Show
from stallmark.experiment.stopping import later
from stallmark.loaders import ledger
from stallmark.record import machine

FAREWELL_S = 20  # executors give their users 12 s


def facts_of(engine: Engine) -> dict[str, Any]:
    """What all machines of a run must agree on, in words; read anew, for a database changes between two runs."""
    facts: dict[str, Any] = {"Stallmark": stallmark.__version__, "server": str(engine.identity())}
    if entry := ledger.read(engine):
        data = vars(entry.identity)
        facts |= {
            "workload": f"{data['workload']} (version {data['version']})",
            **{name: dict(data[name]) for name in ("scale", "options")},
            "seed": data["seed"],
            "size as loaded": entry.loaded_bytes,
        }
    return facts


def serve(server: str, host: str, port: int, show: Show) -> None:
    """Serve run after run on the server of this URL until stopped. Raises StallmarkError when a master refuses this
    machine."""
    engine = open_engine(server)
    engine.identity()  # an unreachable server is said now
    show.say(f"Waiting for runs of {host}:{port}. Ctrl-C ends this.")
    unknown = False
    while True:
        process, channel = start_child("stallmark.driver.cluster.worker")
        try:
            channel.send("order", host=host, port=port, engine=engine.spec())
            unknown = _serve_one(channel, engine, host, show, unknown)
        except Closed:
            raise StallmarkError("The load driver ended by itself; its message stands above.") from None
        finally:
            with later():
                _end(channel)
                process.kill()
                process.wait()
                channel.close()


def _serve_one(channel: Channel, engine: Engine, host: str, show: Show, unknown: bool) -> bool:
    """Until the run is over; returns whether it was said that the master's name is unknown."""
    begun = False
    while True:
        kind, fields = channel.receive()
        if kind == "unknown" and not unknown:
            show.say(f"{host} is not known here yet ({fields['why']}); trying on.")
            unknown = True
        elif kind == "connected":
            about = machine.facts() | {"name": socket.gethostname()}
            channel.send("facts", facts=facts_of(engine), **about)
        elif kind == "refused":
            raise StallmarkError(f"The run refused this machine: {fields['why']}.")
        elif kind == "unable":
            raise StallmarkError("The executors could not start here; their message stands above.")
        elif kind == "ready":
            show.say(f"This is load machine {fields['number']} of {fields['of']}.")
        elif kind == "begun":
            begun = True
            show.say("The run has begun.")
        elif kind == "alone" and begun:
            show.say("The master went away: the load here was ended.")
        elif kind == "finished":
            if begun:
                show.say("The run is over; waiting for the next one.")
            return unknown


def _end(channel: Channel) -> None:
    """Let users finish what they do, as far as anybody is there to let them."""
    try:
        channel.send("quit")
        while select.select([channel], [], [], FAREWELL_S)[0]:
            if channel.receive()[0] == "finished":
                return
    except Closed:
        pass

"""Load machines: a run's users are on other machines, each of which runs `stallmark worker`."""

from stallmark.capabilities import Capability, CommandEntry

_WORKER = "Drive a share of the load of runs started on another machine (`stallmark run --expect-workers N`)."

CAPABILITY = Capability(
    name="machines",
    commands=(CommandEntry("Servers, arrays and load machines", "worker", _WORKER, "stallmark.machines.command"),),
    options={"run": "stallmark.machines.command:machines"},
    master="stallmark.machines.master:Master",
)

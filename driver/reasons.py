"""The reasons for which a run, or one load of it, ends early, as they are told."""

from collections.abc import Mapping, Sequence

from stallmark.driver.messages import (
    CameLate,
    ExecutorDied,
    Incomplete,
    MachineLost,
    Message,
    MessagesLost,
    NotUnderstood,
    SessionLost,
)
from stallmark.processes import how_ended, killed_by
from stallmark.transactions.workload import Workload


def reason(message: Message, workloads: Mapping[str, Workload]) -> str:
    """Return what a message says of the end of a run, or of a load, as the end of a sentence."""
    loads = getattr(message, "loads", None) or [load for load in [getattr(message, "load", None)] if load]
    where = of_loads(loads, workloads)
    if machine := getattr(message, "machine", 0):
        where += f" on load machine {machine}"
    match message:
        case ExecutorDied(pid=pid, why=why) if why:
            return f"executor process {pid}{where} could not begin: {why}"
        case ExecutorDied(loads, pid, code):
            how = how_ended(code)
            if code is None:
                how = "closed its channel without a word"
            elif not killed_by(code):
                how = "ended by a fault of its own, whose message stands in its output"
            background = [workloads[load].background for load in loads]
            others = {each.executed_by: None for each in background if each.sessions_per_user}
            part = "".join(f" and its part of {each}" for each in others)
            return f"executor process {pid}{where} {how}, and its users{part} with it"
        case SessionLost(load, user, why):
            who = workloads[load].background.executed_by if user is None else f"virtual user {user}"
            return f"{who}{where} lost the server: {why}"
        case MachineLost(machine):
            return (
                f"load machine {machine} was lost: its `stallmark worker` ended, or the network between the machines "
                "failed"
            )
        case MessagesLost(machine):
            return f"messages of load machine {machine} were lost: the network between the machines failed"
        case Incomplete(why):
            return why
    return "the load driver stopped the users too early"


def came_late(message: CameLate) -> str:
    """Return the sentence on a load machine that came when the run had all of its own."""
    return f"Load machine {message.name} came when all were there: it waits for the next run."


def not_understood(message: NotUnderstood) -> str:
    """Return the sentence on a sender whose messages are left out."""
    sender = message.sender or "the load driver's conductor"
    where = f" on load machine {message.machine}" if message.machine else ""
    return f"What {sender}{where} sent was no message of Stallmark: it was left out, and the run goes on."


def of_loads(loads: Sequence[str], workloads: Mapping[str, Workload]) -> str:
    """Name loads where the run has several."""
    return f" of {' and '.join(loads)}" if loads and len(workloads) > 1 else ""

"""The sentences on how far an experiment is, of `stallmark status` and of the live page."""

from stallmark import format


def asks(variant: str, question: str) -> str:
    """Return that the operator is asked before a variant."""
    return f"Before “{variant}” the operator is asked: {question}"


def go_on(command: str) -> str:
    """Return what the command to resume an experiment does."""
    return f"{command} makes the runs that are still to be made."


def silent(silent_s: float, command: str) -> str:
    """Return that nothing was written for a while, and what to do."""
    return (
        f"Nothing was written for {format.duration(silent_s)}: it was killed, its machine stands still, or cannot "
        f"reach this folder. If it was killed, {command} goes on."
    )

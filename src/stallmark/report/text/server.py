"""The wording of cautions that come from the server itself."""

from stallmark.analysis.server_cautions import ServerKind
from stallmark.format import listed, percent, quoted
from stallmark.report.text import says


@says(ServerKind.FILES_GREW)
def _(steps: list[str] | None, files: list[str], times: int) -> str:
    often = "once" if times == 1 else f"{times:,} times"
    return (
        f"Files grew {often} while {_steps(steps)} was measured ({listed(files)}): who needs the space waits until it "
        "is there, and a log is zeroed first. Make files large enough beforehand."
    )


@says(ServerKind.GRANTS_PENDING)
def _(steps: list[str] | None, most: int) -> str:
    queries = "1 query" if most == 1 else f"up to {most:,} queries"
    return (
        f"In {_steps(steps)} {queries} waited for memory to sort and join in (memory grants pending): that time is "
        "neither the storage’s nor the buffer pool’s."
    )


@says(ServerKind.DEADLOCKS)
def _(steps: list[str] | None, deadlocks: int) -> str:
    counted = "1 deadlock" if deadlocks == 1 else f"{deadlocks:,} deadlocks"
    return (
        f"The server counted {counted} in {_steps(steps)}: work was undone and done again, and its reads and waits are "
        "in the figures."
    )


@says(ServerKind.NODES_UNEVEN)
def _(steps: list[str] | None, share: float) -> str:
    return (
        f"In {_steps(steps)} pages stayed only {percent(share)} as long in the memory of one NUMA node as in that of "
        "another: the buffer pool was not used evenly, and a larger one may not help all users alike."
    )


@says(ServerKind.REPLICA_BEHIND)
def _(steps: list[str] | None, share: float) -> str:
    return (
        f"In {_steps(steps)} a synchronous replica was not synchronized for {percent(share)} of the time: commits did "
        "not wait for it then, and were faster than they are when it is."
    )


@says(ServerKind.LOG_KEPT)
def _(recovery: str, used_share: float | None) -> str:
    so_far = "" if used_share is None else f" It was {percent(used_share)} full at most."
    return (
        f"The database’s recovery model is {recovery}: its log is kept until it is backed up, so that it fills and "
        f"then grows while it is measured, or the run ends with error 9002.{so_far} ALTER DATABASE … SET RECOVERY "
        "SIMPLE, or back up the log on a schedule, and say that you did."
    )


def _steps(steps: list[str] | None) -> str:
    return quoted(steps) if steps else "every step"


@says(ServerKind.STATISTICS_UPDATED)
def _(steps: list[str] | None, statistics: list[str]) -> str:
    some = listed(statistics[:3])
    more = f" and {len(statistics) - 3:,} more" if len(statistics) > 3 else ""
    return (
        f"Statistics were counted anew while {_steps(steps)} was measured ({some}{more}): that was read from the same "
        "storage, and queries were planned anew. Warm up longer, or say `auto_update_statistics: off` "
        "below `database`."
    )

"""The opening transaction that a workload executes once before a run, and the counters in the database that the run is
checked against."""

import random
from collections.abc import Mapping
from typing import Any

from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, StallmarkError
from stallmark.record.manifest.workload import Opening
from stallmark.transactions.workload import Transaction, Workload, WorkloadContext

WITHIN_S = 600.0  # many orders may be left over


def open_run(engine: Engine, workload: Workload, scale: Mapping[str, Any], seed: int) -> Opening | None:
    """Execute the workload's opening transaction; return its name and what it did, None where there is none.

    Raises StallmarkError when it fails.
    """
    if workload.users.opening is None:
        return None
    shared = workload.users.share(WorkloadContext(scale, seed, engine.query, _post))
    opening = workload.users.opening(shared)
    session = engine.session(WITHIN_S)
    try:
        workload.prepare(session, [workload.users.opening])
        opening.execute(session, opening.inputs(random.Random(seed)))
    except CallFailed as error:
        raise StallmarkError(f"{opening.name}, which a run of {workload.name} begins with, failed: {error}.") from None
    finally:
        session.close()
    return Opening(name=opening.name, done=dict(opening.done))


def counted(engine: Engine, workload: Workload) -> dict[str, int]:
    """Return, by transaction name, the number in the database that grows by one with each commit of it."""
    found = {kind.name: engine.query(query)[0][0] for kind, query in workload.users.counted.items()}
    return {name: int(number or 0) for name, number in found.items()}


def _post(kind: type[Transaction], inputs: tuple, after_s: float) -> None:
    raise AssertionError(f"{kind.name} would follow from what opens a run: nobody would execute it")

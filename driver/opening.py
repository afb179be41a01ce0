"""The opening transaction that a workload executes once before its load."""

import random
from collections.abc import Mapping
from typing import Any

from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, StallmarkError
from stallmark.record.manifest.workload import Opening
from stallmark.transactions.workload import Transaction, Workload, WorkloadContext

WITHIN_S = 600.0  # many orders may be left over


def open_workload(engine: Engine, workload: Workload, scale: Mapping[str, Any], seed: int) -> Opening | None:
    """Execute the workload's opening transaction; return its name and its result, or None without one.

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


def _post(kind: type[Transaction], inputs: tuple, after_s: float) -> None:
    raise AssertionError(f"{kind.name} would follow from an opening transaction: no session would execute it")

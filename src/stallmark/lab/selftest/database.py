"""The databases of a selftest: which they are, by what they are known as its own, and how they are removed."""

import shutil

from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError, as_reason
from stallmark.experiment.progress import Show
from stallmark.experiment.target import Target, things_in
from stallmark.lab.selftest.check import SelftestResult, attempt
from stallmark.loaders import load
from stallmark.scenarios.model import WorkloadChoice
from stallmark.schema.deploy import telling_blockers
from stallmark.schema.own import drop_schemas, in_short
from stallmark.transactions import find_workload

# A seed that nobody else takes: by it a database is known as a selftest's, which may be removed.
SEED = 7_357_437
BANK = WorkloadChoice(name="bank", scale={"branches": 1}, seed=SEED)
BROKERAGE = WorkloadChoice(name="brokerage", scale={"customers": 1_000, "days": 0.02}, seed=SEED)
# One after the other in the same database. What is the server's own matter is tried on the first, the smaller one.
CHOICES = (BANK, BROKERAGE)


def refuse_what_is_not_ours(engine: Engine) -> None:
    """Raise StallmarkError unless the database holds a selftest's data alone, or nothing."""
    others = things_in(engine)  # whatever their schemas are called: what a selftest finds there it drops
    reasons = [in_short(others)] if others else [_other_build(engine, choice) for choice in CHOICES]
    if all(reasons):
        raise StallmarkError(
            f"The database is not empty ({reasons[0]}): a selftest builds its own, and removes it again, so name an "
            "empty database."
        )


def refuse_sessions_of_others(engine: Engine) -> None:
    if sessions := engine.other_sessions():
        raise StallmarkError(
            f"Others are in the database ({in_short(list(map(str, sessions)))}): a selftest drives load there, so name "
            "a database that nobody uses, or add --shared."
        )


def _other_build(engine: Engine, choice: WorkloadChoice) -> str | None:
    """Return how what Stallmark has built in the database differs from a selftest's, or None."""
    try:
        load.recognise(engine, find_workload(choice.name), choice.scale, choice.seed)
    except StallmarkError as error:
        return as_reason(error)
    return None


def remove(engine: Engine, target: Target, show: Show) -> SelftestResult:
    remove = (lambda: drop(engine, show)) if target.url else (lambda: _delete(target, engine))
    return attempt("removed what it made", remove)


def drop(engine: Engine, show: Show) -> str:
    """Drop what selftests build. Raise RunLockTaken if another run, or selftest, is under way."""
    with engine.hold(), telling_blockers(engine, show.say):
        drop_schemas(engine, [find_workload(choice.name) for choice in CHOICES])
    return "the database is empty again"


def _delete(target: Target, engine: Engine) -> str:
    engine.close()
    shutil.rmtree(target.folder(BROKERAGE))
    if target.wal_dir:
        for path in target.wal_dir.iterdir():
            if path.name != "lost+found":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return "the embedded database is gone"

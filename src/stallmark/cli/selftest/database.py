"""The databases of a selftest: which they are, by what they are known as its own, and how they are removed."""

import shutil

from stallmark.cli.selftest.check import SelftestResult, attempt
from stallmark.engines.base import Engine
from stallmark.errors import StallmarkError, as_reason
from stallmark.experiment.others import in_short
from stallmark.experiment.target import Target
from stallmark.loaders import load
from stallmark.scenarios.model import WorkloadChoice
from stallmark.schema.drop import drop_schemas
from stallmark.transactions import find_workload

# A seed that nobody else takes: by it a database is known as a selftest's, which may be removed.
SEED = 7_357_437
BANK = WorkloadChoice(name="bank", scale={"branches": 1}, seed=SEED)
BROKERAGE = WorkloadChoice(name="brokerage", scale={"customers": 1_000, "days": 0.02}, seed=SEED)
# One after the other in the same database. What is the server's own matter is tried on the first, the smaller one.
CHOICES = (BANK, BROKERAGE)


def refuse_what_is_not_ours(engine: Engine) -> None:
    others = [_not_left_by_us(engine, choice) for choice in CHOICES]
    if all(others):
        raise StallmarkError(
            f"The database is not empty ({others[0]}): a selftest builds its own, and removes it again, so name an "
            "empty database."
        )


def refuse_sessions_of_others(engine: Engine) -> None:
    if sessions := engine.other_sessions():
        raise StallmarkError(
            f"Others are in the database ({in_short(list(map(str, sessions)))}): a selftest drives load there, so name "
            "a database that nobody uses, or add --shared."
        )


def _not_left_by_us(engine: Engine, choice: WorkloadChoice) -> str | None:
    """Return what else the database holds; None where it holds a selftest's data alone, or nothing."""
    workload = find_workload(choice.name)
    if other := load.of_others(engine, workload):
        return other
    try:
        load.recognise(engine, workload, choice.scale, choice.seed)
    except StallmarkError as error:
        return as_reason(error)
    return None


def remove(engine: Engine, target: Target) -> SelftestResult:
    remove = (lambda: drop(engine)) if target.url else (lambda: _delete(target, engine))
    return attempt("removed what it made", remove)


def drop(engine: Engine) -> str:
    drop_schemas(engine, [find_workload(choice.name).metadata for choice in CHOICES])
    return "the database is empty again"


def _delete(target: Target, engine: Engine) -> str:
    engine.close()
    shutil.rmtree(target.folder(BROKERAGE))
    if target.wal_dir:
        for path in target.wal_dir.iterdir():
            if path.name != "lost+found":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return "the embedded database is gone"

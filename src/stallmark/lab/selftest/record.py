"""The checks that the records of a selftest's runs allow: of each transaction and collector, and of the data."""

from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.read.run_notes import RunKind, run_notes
from stallmark.analysis.read.waits import read_deadlocks
from stallmark.analysis.validity.invalid import GateKind
from stallmark.cli.common import CONDITION_BROKEN, FAILED
from stallmark.lab.selftest.check import SelftestResult
from stallmark.record.reader import Record
from stallmark.report.text import sentence
from stallmark.report.text.validity import figure

CONSISTENCY = "consistency after the load"


def transactions(record: Record, workload: Any) -> Iterator[SelftestResult]:
    done, errors = record.table("transactions"), record.table("errors")
    for transaction in workload.transactions:
        name = transaction.name
        if transaction is workload.users.opening:
            opening = record.manifest.workload.opening
            said = ", ".join(f"{count:,} {what}" for what, count in (opening.done if opening else {}).items())
            yield SelftestResult(f"transaction {name}", "works", said or "executed before the run")
            continue
        mine = done.filter(pc.equal(done["transaction"], name))
        committed, failed = (pc.sum(mine[column]).as_py() or 0 for column in ("committed", "failed"))
        words = sorted(
            {f"{kind} ({code}): {message}" for kind, code, message in zip(
                *(errors.filter(pc.equal(errors["transaction"], name))[column].to_pylist()
                  for column in ("error_class", "code", "message")), strict=True)}
        )  # fmt: skip
        if not mine.num_rows and not words and transaction not in workload.users.deck:
            yield SelftestResult(f"transaction {name}", "off", "none was due in so short a time")
            continue
        if not mine.num_rows and not words and _dealt(done, workload) < _to_reach_all(record):
            yield SelftestResult(
                f"transaction {name}", "off", "not reached: the users were too slow in so short a time"
            )
            continue
        said = "; ".join([f"{committed:,} committed, {failed:,} failed", *words[:3]])
        ok = committed and not failed
        yield SelftestResult(f"transaction {name}", "works" if ok else "failed", said, 0 if ok else FAILED)


def _dealt(done: pa.Table, workload: Any) -> int:
    """Return how many of the transactions that users start have ended."""
    of_users = done.filter(pc.is_in(done["transaction"], pa.array([kind.name for kind in workload.users.deck])))
    return sum(pc.sum(of_users[column]).as_py() or 0 for column in ("committed", "rolled_back", "failed"))


def _to_reach_all(record: Record) -> float:
    """Return the number of them by which each has come up: whole decks of as many executors as there may be."""
    cards = sum(one.cards for one in record.manifest.workload.transactions if one.source == "users")
    return cards * max((step.users for step in record.manifest.steps), default=1)


def collectors(record: Record) -> Iterator[SelftestResult]:
    off: dict[str, list[str]] = {}  # those of one reason together: a server without the views lacks them all
    for name, known in record.manifest.collectors.items():
        what, rows = f"collector {name}", record.table(name).num_rows
        if known.unavailable:
            off.setdefault(known.unavailable, []).append(name)
        elif known.outages:
            said = " ".join(
                sentence(note)
                for note in run_notes(record)
                if note.kind is RunKind.COLLECTOR_OUTAGE and note.facts["collector"] == known.title
            )
            yield SelftestResult(what, "failed", said, FAILED)
        elif not rows:
            yield SelftestResult(what, "off", "no rows: nothing of its kind was seen")
        else:
            yield SelftestResult(what, "works", " ".join([f"{rows:,} rows.", known.limited or ""]).strip())
    for why, names in off.items():
        yield SelftestResult(f"collector{'s' * (len(names) > 1)} {', '.join(names)}", "off", why)


def deadlocks(record: Record) -> Iterator[SelftestResult]:
    """Say each shape of the deadlocks that the server wrote down: they are few, and say what to mend."""
    for one in read_deadlocks(record):
        said = f"{one.victim} ({one.isolation}) lost to {one.others} over {one.resources}; graph {one.graph}"
        yield SelftestResult(f"deadlocks ({one.times:,})", "works", said)


def conditions(records: Sequence[Record]) -> Iterator[SelftestResult]:
    """Yield whether the data were consistent after every run."""
    seen = [condition for record in records for condition in record.manifest.conditions]
    if refused := {f"{one.name} ({one.refused})" for one in seen if one.refused}:
        yield SelftestResult(CONSISTENCY, "failed", f"the server refused: {'; '.join(sorted(refused))}", FAILED)
    elif broken := {
        f"{one.name}: {one.offending:,} {one.counted} ({one.detail})" for one in seen if one.holds is False
    }:
        yield SelftestResult(CONSISTENCY, "failed", "; ".join(sorted(broken)), CONDITION_BROKEN)
    elif holding := {one.name for one in seen if one.holds}:
        yield SelftestResult(CONSISTENCY, "works", f"all {len(holding)} conditions hold")
    else:
        yield SelftestResult(CONSISTENCY, "off", "the runs ended before it was checked")


def counted(summary: ExperimentSummary) -> Iterator[SelftestResult]:
    """Yield whether the database counted as many commits as users saw, in each run that knows."""
    for run in summary.runs:
        for gate in (one for step in run.steps for one in step.validity.gates if one.kind is GateKind.COMPLETED):
            what = f"counted as committed, run {run.manifest.sequence}"
            if gate.failure:
                yield SelftestResult(what, "failed", sentence(gate.failure), CONDITION_BROKEN)
            else:
                yield SelftestResult(what, "off" if gate.passed is None else "works", figure(gate))

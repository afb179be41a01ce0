"""A comparison of variants of an experiment of queries with the first: run times, plans, and the gain
of parallelism."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from stallmark.analysis.compare.claims import Claims
from stallmark.analysis.compare.sides import variant
from stallmark.analysis.points import mean_of
from stallmark.analysis.queries.summary import QueryCell, QueryComparison, QueryVariant
from stallmark.analysis.read.queries import REFRESH, Execution, QueryRunSummary, in_order
from stallmark.analysis.read.query_figures import geometric_mean
from stallmark.analysis.run import RunSummary
from stallmark.record.devices import storage_label

_MEANS = (
    *("rows", "logical_reads", "physical_reads", "read_bytes", "spill_bytes", "grant_kib", "cpu_ms", "actual_dop"),
)  # fmt: skip

_IO = ("PAGEIOLATCH_", "IO_COMPLETION", "ASYNC_IO_COMPLETION", "WRITELOG", "IO_QUEUE_LIMIT")


def compare(runs: Sequence[RunSummary], claims: Claims) -> QueryComparison | None:
    """Compare all runs of queries among `runs`, as far as they may be compared with the first variant; None without
    any. If runs differ in kind, the phase that the first one has is compared."""
    chosen = [run for run in runs if run.queries]
    if not chosen:
        return None
    executed = [one for run in chosen if run.queries for one in run.queries.executions]
    phase = _phase(executed, chosen[0].queries)
    executed = [one for one in executed if one.phase == phase]
    by_variant: dict[str, list[RunSummary]] = defaultdict(list)
    for run in chosen:
        by_variant[variant(run)].append(run)
    baseline, *_ = by_variant
    cells = {name: _cells(same, phase) for name, same in by_variant.items()}
    variants = []
    dops = list(dict.fromkeys(one.dop for one in executed))
    for name, same in by_variant.items():
        base = {} if claims.reasons_against(baseline, name) else cells[baseline]
        held = [_held_against(base.get(key), cell) for key, cell in cells[name].items()]
        known = [cell.relative for cell in held if cell.relative and cell.dop == dops[0] and cell.query not in REFRESH]
        figures = [run.queries.figures for run in same if run.queries]
        variants.append(
            QueryVariant(
                name=name,
                device=storage_label(same[0].manifest),
                buffer_pool_bytes=same[0].manifest.memory.reached_bytes,
                runs=len(same),
                power=_lowest([one.power for one in figures]),
                throughput=_lowest([one.throughput for one in figures]),
                composite=_lowest([one.composite for one in figures]),
                cells=held,
                relative=geometric_mean(known) if known else None,
                compared=len(known),
            )
        )
    return QueryComparison(
        baseline=baseline,
        phase=phase,
        factor=chosen[0].queries.factor if chosen[0].queries else 1,
        names=sorted({one.query for one in executed}, key=in_order),
        dops=dops,
        variants=variants,
    )


def is_io(wait: str) -> bool:
    """Tell whether a wait, as PostgreSQL's plans or SQL Server call it, is for reads or writes of files."""
    return wait.endswith((" file read", " file write")) or wait.startswith(_IO)


def _phase(executed: Sequence[Execution], first: QueryRunSummary | None) -> str:
    done = {one.phase for one in executed}
    return next((name for name in ("power", "each", "throughput") if name in done), first.run if first else "power")


def _cells(runs: Sequence[RunSummary], phase: str) -> dict[tuple[str, int | None], QueryCell]:
    found: dict[tuple[str, int | None], list[Execution]] = defaultdict(list)
    for run in runs:
        for one in run.queries.executions if run.queries else ():
            if one.phase == phase:
                found[one.query, one.dop].append(one)
    keys = sorted(found, key=lambda key: (in_order(key[0]), key[1] or 0))
    return {key: _cell(*key, found[key]) for key in keys}


def _cell(query: str, dop: int | None, executions: Sequence[Execution]) -> QueryCell:
    """Sum up executions. One that failed makes the time unknown: the others are of the easier parameters."""
    failed = [one for one in executions if one.failed]
    done = [one for one in executions if not one.failed]
    times = [one.seconds for one in done if one.seconds > 0]
    with_waits = [one.wait_ms for one in done if one.wait_ms is not None]
    waits: dict[str, float] = defaultdict(float)
    for each in with_waits:
        for kind, ms in each.items():
            waits[kind] += ms / len(with_waits)
    means: dict[str, Any] = {name: mean_of([getattr(one, name) for one in done]) for name in _MEANS}
    return QueryCell(
        query=query,
        dop=dop,
        seconds=geometric_mean(times) if times and not failed else None,
        relative=None,
        executions=len(executions),
        waits=sorted(waits.items(), key=lambda wait: -wait[1]),
        waits_known=bool(with_waits),
        io_wait_ms=sum(ms for kind, ms in waits.items() if is_io(kind)) if with_waits else None,
        plans=sorted({one.plan_hash for one in done if one.plan_hash}),
        failed=len(failed),
        error=failed[0].error if failed else None,
        **means,
    )


def _held_against(baseline: QueryCell | None, cell: QueryCell) -> QueryCell:
    if baseline is None:
        return cell
    relative = cell.seconds / baseline.seconds if cell.seconds and baseline.seconds else None
    changed = bool(baseline.plans) and bool(set(cell.plans) - set(baseline.plans))
    return replace(cell, relative=relative, plan_changed=changed)


def _lowest(values: Sequence[float | None]) -> float | None:
    """Return the lowest; None where a repeat has no figure: the lowest would be of the others."""
    return None if any(value is None for value in values) else min(v for v in values if v is not None)

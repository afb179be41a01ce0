"""Runs of known throughput, made from one synthetic record, for tests of comparisons.

from support.comparisons import made

runs = made(tmp_path, A=[400, 410, 405], B=[480, 470, 490])          # A B A B A B
runs = made(tmp_path, order="ABBAAB", A=[…], B=[…])
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from stallmark.analysis.compare.summary import PairComparison
from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.run import RunSummary, summarise_run
from stallmark.record.reader import Record
from support.steps import changed_step
from support.synthetic import Truth, make_run

QUIET = {"A": [400.0, 404.0, 402.0], "B": [480.0, 478.0, 484.0]}


def only(runs: Sequence[RunSummary], **options: Any) -> PairComparison:
    """The one pair that is compared."""
    [pair] = compare_runs(runs, **options).pairs
    return pair


def template(folder: Path, **truth: Any) -> RunSummary:
    """A sound run."""
    return summarise_run(Record(make_run(folder / "template", Truth(**truth))), "run1")


def made(template: RunSummary, order: str = "", experiment: str = "e1", **tps: Sequence[float]) -> list[RunSummary]:
    """Runs of the sides named, in the order of the letters (alternating without one), each of its throughput."""
    rounds = range(max(map(len, tps.values())))
    letters = list(order) or [side for number in rounds for side in tps if number < len(tps[side])]
    left = {side: list(values) for side, values in tps.items()}
    runs, repeats = [], dict.fromkeys(tps, 0)
    for number, side in enumerate(letters, 1):
        repeats[side] += 1
        runs.append(one_run(template, side, left[side].pop(0), number, repeats[side], experiment))
    return runs


def one_run(
    template: RunSummary, variant: str, tps: float, number: int, repeat: int, experiment: str = "e1"
) -> RunSummary:
    manifest = template.manifest.changed(
        variant={"name": variant}, repeat=repeat, sequence=number, experiment=experiment
    )
    folder = f"{number:02d}-{variant}"
    started = f"2025-11-21T{number // 60:02d}:{number % 60:02d}:00+00:00"
    step = template.steps[0]
    of_run = changed_step(
        step, key=folder, run=folder, variant=variant, repeat=repeat, tps=tps, latency_mean_ms=step.users / tps * 1000
    )
    return replace(template, folder=folder, started=started, manifest=manifest, steps=[of_run])


def with_step(run: RunSummary, **changes: Any) -> RunSummary:
    step = changed_step(run.steps[0], **changes)
    return replace(run, steps=[step])


def with_manifest(run: RunSummary, **changes: Any) -> RunSummary:
    return replace(run, manifest=run.manifest.changed(**changes))

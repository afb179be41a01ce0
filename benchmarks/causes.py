"""Causes that were put there: whether they are found, and what predictions of faster reads are worth.

    python -m benchmarks.causes [FOLDER]     (from the root of the repository; 8 minutes on an idle machine)

The bank on the embedded server: reads of 4, 1 and 0.2 ms with a small pool, and devices of 4 and 0.5 ms with everything
in the pool, three runs of each. Says what was injected beside what was found, the laws that do not close, and for every
pair how far each variant's model is from what the other did. Records stay in FOLDER [default: a temporary one].
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from stallmark.analysis.cause import explain
from stallmark.analysis.cause_evidence import ComparedFigure
from stallmark.analysis.experiment import summarise
from stallmark.analysis.metrics import Point, points
from stallmark.analysis.step_summary import Source
from stallmark.format import number
from stallmark.record.reader import find_records
from stallmark.report.text import sentence

REPEATS = 3


def variant(read_ms: float, pool: str, spindles: int = 64) -> dict[str, Any]:
    device = {"spindles": spindles, "read_ms": read_ms, "write_ms": 1, "sync_ms": 0, "mb_per_s": 500}
    return {"name": f"reads of {read_ms:g} ms", "buffer_pool": pool, "emulated_array": {"data": device}}


EXPERIMENTS = {
    "delays": [variant(read_ms, "5 %") for read_ms in (4, 1, 0.2)],
    "all in the pool": [variant(read_ms, "150 %") for read_ms in (4, 0.5)],
}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, variants in EXPERIMENTS.items():
        print(f"\n{name}")
        tell(points(summarise(find_records([run(folder, name, variants)])).steps))


def run(folder: Path, name: str, variants: Sequence[dict[str, Any]]) -> Path:
    """Run the experiment; return its folder."""
    scenario = folder / f"{name.replace(' ', '-')}.yaml"
    scenario.write_text(
        json.dumps(
            {
                **{"name": name.replace(" ", "-"), "title": name, "answers": "-", "needs": "-"},
                "workload": {"name": "bank", "scale": {"branches": 20}},
                **{"users": 4, "warm_up": "5s", "measure": "15s", "repeats": REPEATS},
                **{"start_cache": "prefilled", "reset": "restore", "variants": list(variants)},
            }
        )
    )
    command = [sys.executable, "-m", "stallmark.cli.main", "run", str(scenario), "--out", str(folder / "runs")]
    subprocess.run(command, check=False, stdout=subprocess.DEVNULL)  # a run that is marked exits with another code
    return max((folder / "runs").glob(f"*-{scenario.stem}"))


def tell(found: Sequence[Point]) -> None:
    for point in found:
        judged = [step.cause for step in point.steps if step.cause]
        open_laws = {law.kind for one in judged for law in one.laws if law.closed is False}
        print(f"  {point.first.variant}: {number(point.tps)} TPS; laws that do not close: {open_laws or 'none'}")
    for a, b in combinations(found, 2):
        cause = explain(a.steps, b.steps, paired=True)
        print(f"  {a.first.variant} → {b.first.variant}: {sentence(cause.finding)}")
        for one in cause.evidence:
            if (one.figure, one.source) == (ComparedFigure.READ_TIME, Source.DEVICE):
                ends = f" ({one.low:.2f} to {one.high:.2f})" if one.low is not None and one.high is not None else ""
                print(f"    read time of the device changed by {one.change:.2f} ms{ends}")
        for test in cause.predictions:
            print(
                f"    the model of “{test.model_of}” says {number(test.predicted)} TPS ({number(test.low)} to "
                f"{number(test.high)}) of “{test.variant}”, which had {number(test.measured)}: {test.error:+.1%}"
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="stallmark-causes-")))

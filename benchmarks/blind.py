"""A blind test of the headline experiment: three arrays drawn from a hidden seed, told apart from the records alone.

    python -m benchmarks.blind FOLDER [ROUNDS] [LOAD]     (from the root of the repository; 4 rounds by default)

LOAD is bank (2 minutes a round) or brokerage (7, and its transactions differ so much that their reads scatter more).

Disks alone, with a flash read cache and with a flash tier, their speeds and sizes drawn and their names shuffled: A, B
and C. A round runs each once, every other round in reverse order, each round with inputs of its own.
Then everything that tells which array it was is taken out of copies of the records: the device's own counters, its
model, the scenario. What is left is what there is of an array that nobody can look into: the database's side. From it
come the order of the arrays, their read times in 95 % intervals over rounds, the reads per transaction, and the cause.

Only then the truth is revealed. It is a prediction from the drawn parameters: a simulation that shares no code with the
emulation is given what every process of the server asked for, in which order and where, and how long it did something
else in between, which has its waits for locks, the log and what others were just reading in it (`observe: [io_trace]`);
how long each I/O takes, what flash holds by then, and with both the rest of the load, is predicted (array_replay.py).
Where on an array's disks the data lie nobody knows from outside: a prediction is the mean over many such chances. The
emulated array draws another for every round, as the database's files are made anew; so the scatter of the rounds is all
the doubt there is. A read time is recovered if the interval of recovered / predicted has 1 in it
and reaches no further than a tenth.
"""

import argparse
import json
import secrets
import shutil
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.array_replay import Predicted, Process, Replay, processes
from scipy import stats

from stallmark.analysis.cause.summary import Storage
from stallmark.analysis.compare.summary import Verdict
from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.experiment import summarise
from stallmark.analysis.run import RunSummary
from stallmark.analysis.step_summary import StepSummary
from stallmark.format import listed, number
from stallmark.record.manifest.storage import Devices
from stallmark.record.manifest_file import read_manifest, write_manifest
from stallmark.record.reader import Record, find_records
from stallmark.report.text import sentence
from stallmark.scenarios.emulated_array import EmulatedArray
from stallmark.stats.thresholds import REPLICATES
from stallmark.storage.emulator import ArrayModel

READS_APART = 0.05
"""Relative: how far physical reads per transaction may lie apart, of arrays under one database and pool."""

ALIKE = 0.05
"""Read times closer together than this have no order."""

REACH = 0.10
"""Relative: an interval that reaches further tells nothing."""

CHANCES = 20
"""Predictions of each round, every one with another chance of where the data lie."""

UNSEEN = ("device", "io_trace", "io_files")
"""The tables that tell what nobody can see of an array."""

FLASH_MS = 0.5, 1.5
"""Drawn from: what is shorter than a process needs to wake up cannot be emulated by letting it sleep."""

LOADS: dict[str, dict[str, Any]] = {
    "bank": {"workload": {"name": "bank", "scale": {"branches": 20}}, **{"warm_up": "14s", "measure": "15s"}},
    "brokerage": {
        "workload": {"name": "brokerage", "scale": {"customers": 5000, "days": 0.2}},
        **{"warm_up": "60s", "measure": "45s"},
    },
}

ARRAYS = ("disks", "cache", "tier")


def drawn(seed: int, load: str) -> dict[str, Any]:
    """Return the hidden truth: which letter is which array, and the arrays."""
    rng = np.random.default_rng(seed)
    disks = {
        "spindles": int(rng.integers(8, 17)),
        "rpm": int(rng.choice([7200, 10000, 15000])),
        "seek_ms": round(float(rng.uniform(3, 7)), 2),
        "sync_ms": 1,
        "mb_per_s": 150,
    }

    def flash(kind: str) -> dict[str, Any]:
        size, read_ms = rng.integers(10, 41), rng.uniform(*FLASH_MS)
        of = {"size": f"{size} %", "read_ms": round(float(read_ms), 2)}
        return disks | {kind: of | ({"move": "5 %"} if kind == "tier" else {})}

    models = {"disks": disks, "cache": flash("cache"), "tier": flash("tier")}
    letters = dict(zip("ABC", rng.permutation(ARRAYS).tolist(), strict=True))
    return {
        "seed": seed,
        "load": load,
        "letters": letters,
        "arrays": {letter: models[name] for letter, name in letters.items()},
    }


def scenario(truth: dict[str, Any], rounds: int) -> dict[str, Any]:
    log = {"spindles": 1, "read_ms": 1, "write_ms": 0, "sync_ms": 2, "mb_per_s": 150}
    return {
        **{"name": "blind", "title": "Blind", "answers": "Which?", "needs": "-", "takes": "-"},
        **LOADS[truth["load"]],
        **{"users": 30, "ramp": "1s", "buffer_pool": "6 %", "start_cache": "prefilled", "reset": "restore"},
        "observe": ["io_trace"],
        **{"repeats": rounds, "order": "abba"},
        "variants": [
            {"name": name, "emulated_array": {"data": model, "wal": log}} for name, model in truth["arrays"].items()
        ],
    }


def run(folder: Path, rounds: int, load: str) -> dict[str, Any]:
    """Run the experiment; return the truth, which stays sealed in the folder until all was judged. A finished run is
    not repeated."""
    folder.mkdir(parents=True, exist_ok=True)
    sealed, whole = folder / "sealed.json", folder / "whole"
    if sealed.exists():
        if not whole.exists():
            sys.exit(f"The rounds in {folder} did not come to their end: name another folder.")
        print(f"Judging again what was run in {folder}.")
        truth: dict[str, Any] = json.loads(sealed.read_text())
        return truth
    truth = drawn(secrets.randbits(64), load)
    sealed.write_text(json.dumps(truth))
    document = folder / "blind.yaml"
    document.write_text(json.dumps(scenario(truth, rounds)))
    command = [sys.executable, "-m", "stallmark.cli.main", "run", str(document), "--out", str(folder / "runs")]
    finished = subprocess.run(command, capture_output=True, text=True)
    document.unlink()
    if finished.returncode:
        sys.exit(f"The rounds failed:\n{finished.stderr}")
    whole.touch()
    return truth


def manifests(folder: Path) -> list[Path]:
    return sorted((folder / "runs").glob("*-blind/*/manifest.json"))


def redacted(folder: Path) -> Path:
    """Make copies of the records from which nobody can tell what the array was; return their folder."""
    target = folder / "redacted"
    shutil.rmtree(target, ignore_errors=True)
    for record in manifests(folder):
        place = target / record.parent.relative_to(folder / "runs")
        place.mkdir(parents=True)
        for table in record.parent.glob("*.parquet"):
            if table.stem not in UNSEEN:
                shutil.copy(table, place)
        manifest = read_manifest(record.parent)
        collectors = {name: one for name, one in manifest.collectors.items() if name not in UNSEEN}
        write_manifest(
            place,
            manifest.changed(
                devices=Devices(),
                variant=manifest.variant.changed(emulated_array=None),
                scenario=manifest.scenario.changed(variants=[]),
                collectors=collectors,
            ),
        )
    return target


def found(folder: Path) -> list[RunSummary]:
    return summarise(find_records(sorted(folder.glob("*-blind")))).runs


@dataclass(frozen=True)
class Truth:
    """Predicted for one round: the mean over all chances of where data lie. `chance`: the standard deviation of the
    log of the read time over them."""

    reads_per_s: float
    read_ms: float
    flash_share: float
    chance: float


def predicted(folder: Path, truth: dict[str, Any]) -> dict[str, list[Truth]]:
    """Return the predictions for all rounds, by the letter of the array."""
    found: dict[str, list[Truth]] = {}
    for path in manifests(folder):
        manifest = read_manifest(path.parent)
        letter, [step] = manifest.variant.name, manifest.steps
        load = processes(Record(path.parent), step.end_s)
        array = EmulatedArray.model_validate(truth["arrays"][letter])
        model = array.resolve(manifest.database.bytes_before or 0)
        replay = partial(_replayed, model, load, step.measure_s, step.end_s)
        with ProcessPoolExecutor() as pool:
            one = list(pool.map(replay, range(CHANCES)))
        logs = np.log([each.read_ms for each in one])
        found.setdefault(letter, []).append(
            Truth(
                float(np.mean([each.reads_per_s for each in one])),
                float(np.exp(logs.mean())),
                float(np.mean([each.flash_share for each in one])),
                float(logs.std(ddof=1)),
            )
        )
    return found


def _replayed(model: ArrayModel, load: Sequence[Process], measure: float, end: float, chance: int) -> Predicted:
    return Replay(model, load, end, chance).predict(measure)


def of_variant(runs: Sequence[RunSummary]) -> dict[str, list[StepSummary]]:
    by_name: dict[str, list[StepSummary]] = {}
    for one in sorted((step for run in runs for step in run.steps), key=lambda step: step.variant):
        by_name.setdefault(one.variant, []).append(one)
    return by_name


def interval(values: Sequence[float]) -> tuple[float, float, float]:
    """Return the geometric mean with its 95 % interval over rounds (Student)."""
    logs = np.log(values)
    reach = stats.t.ppf(0.975, len(logs) - 1) * logs.std(ddof=1) / np.sqrt(len(logs))
    return tuple(float(np.exp(logs.mean() + end)) for end in (0, -reach, reach))  # type: ignore[return-value]


def judge(folder: Path, truth: dict[str, Any]) -> bool:
    """Say what was recovered from the redacted records, then the truth; whether all of it was right."""
    runs = found(redacted(folder))
    steps = of_variant(runs)
    data = {name: [s.storage.data for s in same if s.storage.data] for name, same in steps.items()}
    read_ms = {name: interval([one.read_ms or 0 for one in same]) for name, same in data.items()}
    tps = {name: interval([s.result_tps for s in same]) for name, same in steps.items()}
    reads = {name: interval([s.storage.reads_per_transaction or 0 for s in same])[0] for name, same in steps.items()}
    order = sorted(tps, key=lambda name: -tps[name][0])
    print(f"\nFrom {len(runs)} redacted records:")
    print(f"  order: {' > '.join(order)}")
    for name in order:
        mean, low, high = read_ms[name]
        print(
            f"  {name}: {number(tps[name][0])} {steps[name][0].throughput.primary or 'transactions'}/s, a read takes "
            f"{number(mean)} ms ({number(low)} to {number(high)}), {reads[name]:.2f} reads per transaction"
        )
    right = [causes(runs)]
    print(f"\nThe truth (seed {truth['seed']}):")
    true = predicted(folder, truth)
    true_ms = {name: interval([one.read_ms for one in true[name]])[0] for name in order}
    unlike = []
    for name in order:
        rounds, same = true[name], data[name]
        chance = float(np.mean([one.chance for one in rounds]))
        pairs = list(zip(same, rounds, strict=True))
        ratios = [(seen.read_ms or 0) / one.read_ms for seen, one in pairs]
        rate = np.mean([one.reads_per_s / (seen.reads / seen.seconds) for seen, one in pairs])
        ratio, low, high = interval(ratios)
        if not low <= 1 <= high or high / ratio > 1 + REACH:
            unlike.append(name)
        print(
            f"  {name} is {truth['letters'][name]}: {truth['arrays'][name]}; predicted: {number(true_ms[name])} ms a "
            f"read (standard deviation {chance:.1%} by where data lie), "
            f"{np.mean([one.flash_share for one in rounds]):.0%} by flash, {rate:.2f} times the rate of reads that "
            f"there was; recovered / predicted {ratio:.3f} ({low:.3f} to {high:.3f})"
        )
    wrong = [f"{a} {b}" for a, b in combinations(order, 2) if true_ms[a] > true_ms[b] * (1 + ALIKE)]
    apart = max(reads.values()) / min(reads.values()) - 1
    print(f"\n  order {'WRONG: ' + listed(wrong) if wrong else 'recovered'}")
    print(f"  read times {'NOT recovered: ' + listed(unlike) if unlike else 'recovered'}")
    print(f"  reads per transaction {apart:.1%} apart, {READS_APART:.0%} allowed")
    return all([*right, not wrong, not unlike, apart <= READS_APART])


def causes(runs: Sequence[RunSummary]) -> bool:
    """Print the cause of each pair; return whether storage is named as the cause of every pair that differs."""
    right = True
    for baseline in ("A", "B"):
        for pair in compare_runs(runs, "variants", baseline).pairs:
            if baseline == "B" and pair.b == "A":
                continue  # said already
            print(f"  {pair.verdict}: {sentence(pair.finding)}")
            print(f"    {sentence(pair.cause.finding) if pair.cause else 'No cause.'}")
            if pair.verdict in (Verdict.BETTER, Verdict.WORSE):
                right = right and pair.cause is not None and pair.cause.storage == Storage.CAUSE
            right = right and pair.verdict != Verdict.NOT_COMPARABLE
    return right


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("rounds", type=int, nargs="?", default=4)
    parser.add_argument("load", choices=LOADS, nargs="?", default="bank")
    given = parser.parse_args()
    if given.rounds < REPLICATES:
        sys.exit(f"{REPLICATES} rounds are needed for a verdict.")
    sys.exit(0 if judge(given.folder, run(given.folder, given.rounds, given.load)) else 1)

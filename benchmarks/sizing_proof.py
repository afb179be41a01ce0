"""Does a sizing tell the truth? Arrays drawn from a seed are sized for a profile, then the load is really run on them.

    python -m benchmarks.sizing_proof FOLDER [--seed N] [--at-once 1]     (from the root of the repository)

Production is a brokerage and a bank on emulated disks A, with users who come and go as over a day. A second process,
which knows nothing of either, profiles the server. Candidates are other kinds of arrays: disks, flash, and disks with a
slow log, one of which at least carries 1.5 times the load and one of which does not. `run sizing` measures each, and
`size` predicts its headroom. Then the transactions of production run on each array, at the rates of its busiest hour
times a multiple that is searched for: the real headroom is the one up to which the mean time of reads keeps the limit.
It takes about 7 minutes for production, and 15 for each array, with a database of its own. Two at once need
two cores that are otherwise idle. What was made in FOLDER is not made again.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from stallmark.analysis.loads.summary import LoadsSummary, summarise_loads
from stallmark.analysis.profile.demand import demand_of
from stallmark.analysis.sizing.reach import stand_in_reach
from stallmark.engines.postgres.embedded.server import EmbeddedServer
from stallmark.experiment.target import Target
from stallmark.record.reader import find_records
from stallmark.record.sizing.folder import read_sizing
from stallmark.report.text.ceiling import limit_of
from stallmark.report.text.sizing import span
from stallmark.scenarios.read import read_scenario

ENTRY = "stallmark.cli.entry"
LIMIT_MS = 12
WITHIN = 0.15
DAY = (0.4, 0.7, 1.0, 0.6)
"""The share of the users of the busiest hour, hour by hour."""
BUSIEST = DAY.index(max(DAY))
USERS = {"brokerage": 20, "bank": 20}
THINKS = {"brokerage": "1s", "bank": "500ms"}
LOADS: dict[str, dict[str, Any]] = {
    "brokerage": {"workload": "brokerage", "scale": {"customers": 2000, "days": 0.1}},
    "bank": {"workload": "bank", "scale": {"branches": 10}},
}
MOST = {"brokerage": 80, "bank": 60}
"""Transactions of each load at once: the server has sessions for no more, and for the brokerage's market emulator."""
LOG = {"spindles": 1, "read_ms": 1, "write_ms": 0.5, "sync_ms": 1, "mb_per_s": 150}
HOUR_S = 75


@dataclass(frozen=True)
class Kind:
    name: str
    data: dict[str, Any]
    log: dict[str, Any]


def drawn(rng: np.random.Generator) -> tuple[Kind, list[Kind]]:
    """Return the array of production, and candidates of other kinds: larger disks, fewer disks, and flash."""

    def disks(spindles: int, rpm: int) -> dict[str, Any]:
        seek_ms = round(float(rng.uniform(3.2, 4.5)), 2)
        return {"spindles": spindles, "rpm": rpm, "seek_ms": seek_ms, "sync_ms": 1, "mb_per_s": 150}

    flash_ms = round(float(rng.uniform(2, 4)), 2)
    flash = {
        "spindles": int(rng.integers(2, 5)),
        "read_ms": flash_ms,
        "write_ms": flash_ms,
        "sync_ms": 1,
        "mb_per_s": 400,
    }
    slow_log = LOG | {"sync_ms": round(float(rng.uniform(2, 5)), 1)}
    candidates = [
        Kind("more disks", disks(int(rng.integers(20, 33)), 15000), LOG),
        Kind("fewer disks", disks(int(rng.integers(5, 9)), 10000), slow_log),
        Kind("flash", flash, LOG),
    ]
    return Kind("A", disks(int(rng.integers(12, 17)), 10000), LOG), candidates


def scenario(name: str, array: Kind, loads: dict[str, dict[str, Any]], **keys: Any) -> dict[str, Any]:
    """Return the scenario of the loads of production on an array."""
    return {
        **{"name": name, "title": name, "answers": "-", "needs": "-"},
        "loads": {load: LOADS[load] | more for load, more in loads.items()},
        **{"ramp": "2s", "warm_up": "8s", "buffer_pool": "8 %", "start_cache": "prefilled", "reset": "restore"},
        **{"emulated_array": {"data": array.data, "wal": array.log}, "variants": [{"name": array.name}]},
        **keys,
    }


def stallmark(*words: str, home: Path | None = None) -> str:
    """Run the command, with databases in `home`; return what it printed. Exit where it fails, but for a verdict."""
    environment = os.environ | ({"STALLMARK_HOME": str(home)} if home else {})
    command = [sys.executable, "-m", ENTRY, *words]
    finished = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    if finished.returncode not in (0, 5):
        print(f"{' '.join(words)} failed:\n{finished.stderr}", file=sys.stderr, flush=True)
        sys.exit(1)
    return finished.stdout


def home_of(folder: Path, array: Kind) -> Path:
    return folder / "homes" / array.name.replace(" ", "-")


def written(folder: Path, document: dict[str, Any]) -> Path:
    path = folder / f"{document['name']}.yaml"
    path.write_text(json.dumps(document))
    return path


def profiled(folder: Path, array: Kind) -> Path:
    """Run the day of production, and profile it from beside; return the profile."""
    profile = folder / "profile"
    users = {
        load: {"users": [round(most * share) for share in DAY], "think_time": {"mean": THINKS[load]}}
        for load, most in USERS.items()
    }
    path = written(folder, scenario("production", array, users, measure=f"{HOUR_S}s"))
    production = subprocess.Popen(
        [sys.executable, "-m", ENTRY, "run", str(path), "--out", str(folder / "runs")],
        stdout=subprocess.DEVNULL,
        stderr=(folder / "production.log").open("w"),
    )
    server = EmbeddedServer(Target().folder(read_scenario(str(path)).contents))
    url = f"postgresql://stallmark@/postgres?host={quote(str(server.socket_folder))}"
    while production.poll() is None and "running:" not in (folder / "production.log").read_text():
        time.sleep(1)
    day_s = len(DAY) * (HOUR_S + 10)
    stallmark("profile", "--server", url, "--for", f"{day_s - 20}s", "--out", str(profile))
    if production.wait():
        sys.exit(f"Production failed:\n{(folder / 'production.log').read_text()}")
    return profile


def sized(folder: Path, profile: Path, array: Kind) -> Path:
    """Measure a candidate; return the folder of its sizing."""
    out = folder / "candidates" / array.name.replace(" ", "-")
    if not (found := sorted(out.glob("*-sizing-emulated"))):
        stallmark(
            "run", "sizing-emulated", "--profile", str(profile), "--out", str(out),
            "--set", f"candidate.name={array.name}",
            "--set", f"emulated_array={json.dumps({'data': array.data, 'wal': array.log})}",
            "--set", f"slo={{read: {LIMIT_MS}ms}}", "--set", "measure=15s",
            home=home_of(folder, array),
        )  # fmt: skip
        found = sorted(out.glob("*-sizing-emulated"))
    return found[-1]


def really_name(array: Kind) -> str:
    return f"really-{array.name.replace(' ', '-')}"


def really(folder: Path, array: Kind) -> float | None:
    """Run ever more of production's transactions on an array; return the multiple of those of the busiest hour up to
    which reads keep the limit. None where the search came to no answer."""
    name = really_name(array)
    if not sorted((folder / "runs").glob(f"*-{name}")):
        most = {load: {"users": MOST[load], "arrivals": {"kind": "poisson", "rate": rate}}
                for load, rate in rates(folder).items()}  # fmt: skip
        search = {"of": "load", "from": 0.25, "to": 16, "tolerance": "5 %"}
        slo = {"read": f"{LIMIT_MS}ms"}
        path = written(folder, scenario(name, array, most, measure="15s", search=search, slo=slo))
        stallmark("run", str(path), "--out", str(folder / "runs"), home=home_of(folder, array))
    [record] = find_records(sorted((folder / "runs").glob(f"*-{name}"))[-1:])
    seen = sorted((one.searched.level, one.searched.limits[0].value) for one in record.manifest.steps if one.searched)
    print(f"  {array.name}: " + ", ".join(f"{multiple:g}× {read_ms or 0:.1f} ms" for multiple, read_ms in seen))
    found = record.manifest.search
    return float(np.sqrt(found.holds * found.breaks)) if found and found.holds and found.breaks else None


def limit(experiment: Path, folder: Path) -> tuple[list[str], str | None]:
    """Return what ended first in the runs of a folder, and which device was the limit, where one is named."""
    ends = stand_in_reach(experiment, demand_of(folder / "profile")).ends
    if ends is None:
        return [], None
    return sorted({one[0] for one in ends.facts["missed"]}), limit_of(ends.facts["verdict"])


def rates(folder: Path) -> dict[str, float]:
    """Return the transactions per second that the users of each load began in the busiest hour of production."""
    found = {}
    for load, view in _day(folder).loads.items():
        step = view.runs[0].steps[BUSIEST]
        ended = sum(one.committed + one.rolled_back + one.failed for one in step.transactions if one.source == "users")
        found[load] = ended / step.interval.measured_s
    return found


def hour_of_window(folder: Path, sizing: Path) -> float:
    """Return the I/Os of data of the busiest hour as a multiple of those of the window that was sized: a headroom is of
    the window, and what really ran are multiples of the hour."""
    data = _day(folder).whole.runs[0].steps[BUSIEST].storage.data
    window = read_sizing(sizing).demand.windows[0]
    assert data
    return (data.reads + data.writes) / data.seconds / (window.mean("reads") + window.mean("writes"))


@cache
def _day(folder: Path) -> LoadsSummary:
    return summarise_loads(find_records(sorted((folder / "runs").glob("*-production"))))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, choices=(1, 2, 3), default=1)
    given = parser.parse_args()
    folder: Path = given.folder
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("STALLMARK_HOME", str(folder / "home"))
    production, candidates = drawn(np.random.default_rng(given.seed))
    profile = folder / "profile"
    if not profile.exists():
        profiled(folder, production)
    print(f"seed {given.seed}, production on {production.data}")
    with ThreadPoolExecutor(given.at_once) as pool:
        real = list(pool.map(partial(judged, folder, profile), candidates))
    known = [one for one in real if one is not None]
    if proven := len(known) == len(candidates):
        print(f"  carries 1.5 times the load: {sum(one >= 1.5 for one in known)} of {len(known)}")
    sys.exit(0 if proven else 1)


def judged(folder: Path, profile: Path, array: Kind) -> float | None:
    """Print what was predicted of an array and what came true. Return its real headroom; None where that is not known,
    or the prediction was not within WITHIN of it, or named another limit."""
    sizing = sized(folder, profile, array)
    [found] = json.loads(stallmark("size", str(profile), "--json", str(sizing)))["candidates"]
    predicted, multiple = found["middle"], really(folder, array)
    print(f"  {array.name}: data {array.data}, log {array.log}")
    for method in ("replay", "stand_in"):
        if found[method]:
            print(f"  {array.name}: {method} {span(found[method]['low'], found[method]['high'])}")
    stand_in = read_sizing(sizing).stand_in
    if predicted is None or multiple is None or not (stand_in and stand_in.ceiling):
        print(f"  {array.name}: predicted {predicted}, really {multiple} times the hour: not known")
        return None
    real = multiple * hour_of_window(folder, sizing)
    [run] = sorted((folder / "runs").glob(f"*-{really_name(array)}"))
    named, true = limit(sizing / stand_in.ceiling, folder), limit(run, folder)
    print(f"  {array.name}: ends by {named}, really by {true}")
    print(
        f"  {array.name}: predicted {predicted:.2f} ({span(found['low'], found['high'])}), real {real:.2f}: "
        f"{predicted / real - 1:+.0%}"
    )
    return real if abs(predicted / real - 1) <= WITHIN and named == true else None


if __name__ == "__main__":
    main()

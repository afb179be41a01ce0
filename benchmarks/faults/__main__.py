"""The command of the campaign."""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from benchmarks.faults.kinds import KINDS
from rich.console import Console
from rich.table import Table

ROUND_WITHIN_S = 420
APART = ["unshare", "--mount", "--ipc", "--pid", "--fork", "--mount-proc", "--kill-child"]
INIT = ["sh", "-c", 'mount -t tmpfs tmpfs /dev/shm && "$@"; exit $?', "sh"]  # which also takes leave of orphans


@dataclass(frozen=True)
class Result:
    """The result of a round."""

    number: int
    kind: str
    did: Sequence[str]
    problems: Sequence[str]
    skipped: str | None
    seconds: float


def kinds(seed: int) -> Iterator[str]:
    """Yield the kinds of rounds from the first on: decks with every kind as often as it is to come, each shuffled."""
    rng = random.Random(seed)
    cards = [kind for kind, (often, _) in KINDS.items() for _ in range(often)]
    while True:
        yield from rng.sample(cards, len(cards))


def can_be_apart() -> bool:
    """Tell whether a round can have processes, shared memory and mounts of its own."""
    return os.getuid() == 0 and subprocess.run([*APART, *INIT, "true"], capture_output=True).returncode == 0


def make(seed: int, work: Path, isolated: bool, planned: tuple[int, str]) -> Result:
    """Make one round. Its folder is kept where something is wrong."""
    number, kind = planned
    folder = work / str(number)
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("in", "t"):
        (folder / part).mkdir(parents=True)
    arguments = [str(seed), str(number), kind, str(folder), str(work / "prepared"), "yes" if isolated else "no"]
    command = [*(APART + INIT if isolated else []), sys.executable, "-m", "benchmarks.faults.one_round", *arguments]
    environment = os.environ | {"TMPDIR": str(folder / "t"), "PYTHONUNBUFFERED": "1"}
    with (folder / "log").open("w") as log:
        try:
            subprocess.run(command, env=environment, stdout=log, stderr=log, timeout=ROUND_WITHIN_S)
        except subprocess.TimeoutExpired:
            log.write(f"not ended after {ROUND_WITHIN_S} s")
    try:
        found = json.loads((folder / "found.json").read_text())
    except (OSError, ValueError):
        last = (folder / "log").read_text().strip().splitlines()[-1:] or ["nothing said"]
        found = {"did": [], "problems": [f"the round itself did not end: {last[0]}"], "skipped": None, "seconds": 0.0}
    if not found["problems"]:
        shutil.rmtree(folder, ignore_errors=True)
    return Result(number, kind, **found)


def show(results: Sequence[Result], seed: int, work: Path, isolated: bool, out: Console) -> None:
    """Print the table: rounds by kind, the failures with their seed, and what was left out."""
    by_kind: dict[str, list[Result]] = defaultdict(list)
    for result in results:
        by_kind[result.kind].append(result)
    table = Table("kind", "rounds", "failed", "left out", "too late")
    for kind in filter(by_kind.get, KINDS):
        of = by_kind[kind]
        failed, skipped = sum(bool(one.problems) for one in of), sum(bool(one.skipped) for one in of)
        late = sum(any("too late" in did for did in one.did) for one in of)
        table.add_row(kind, *map(str, (len(of), failed, skipped, late)))
    out.print(table)
    for one in (one for one in results if one.problems):
        did, kept = "; ".join(one.did), work / str(one.number)
        out.print(f"--seed {seed} --only {one.number} ({one.kind}: {did}), kept in {kept}:", highlight=False)
        for problem in one.problems:
            out.print(f"    {problem}", markup=False, highlight=False)
    for why in dict.fromkeys(one.skipped for one in results if one.skipped):
        out.print(f"Left out: {why}", markup=False, highlight=False)
    if not isolated:
        out.print("Left out: whether shared memory is left, for rounds cannot be set apart here (root, unshare).")
    made = [one for one in results if not one.skipped]
    out.print(f"{len(made)} rounds of seed {seed}, {sum(bool(one.problems) for one in made)} failed.", highlight=False)


def main() -> int:
    """Make the rounds; return 1 where one has failed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.faults")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--only", type=int, metavar="ROUND", help="This round alone.")
    parser.add_argument("--jobs", type=int, default=1, help="Rounds at once.")
    asked = parser.parse_args()
    # A shell has what it starts in the background ignore Ctrl-C, and so would all that the rounds start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    numbered = enumerate(kinds(asked.seed), 1)
    planned = list(islice(numbered, asked.rounds))
    if asked.only:
        planned = list(islice(enumerate(kinds(asked.seed), 1), asked.only - 1, asked.only))
    out, isolated, results = Console(soft_wrap=True), can_be_apart(), []
    work = Path(tempfile.mkdtemp(prefix="sf-"))  # short: the path of a socket holds 107 bytes
    pool = ThreadPoolExecutor(asked.jobs)
    try:
        for one in pool.map(partial(make, asked.seed, work, isolated), planned):
            results.append(one)
            state = "FAILED" if one.problems else f"left out: {one.skipped}" if one.skipped else "passed"
            line = f"{one.number:4} {one.kind}: {'; '.join(one.did)}: {state} ({one.seconds:.0f} s)"
            out.print(line, markup=False, highlight=False)
    finally:
        pool.shutdown(cancel_futures=True)  # Ctrl-C ends with the table of the rounds until then
        show(results, asked.seed, work, isolated, out)
        failed = any(one.problems for one in results)
        shutil.rmtree(work / "prepared" if failed else work, ignore_errors=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())

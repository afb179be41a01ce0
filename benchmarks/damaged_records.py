"""Damaged records are found out: a sentence or the same figures, never a traceback, never other figures.

    python -m benchmarks.damaged_records [--seed 1] [--count 1000]

Makes a small record of each kind, damages a copy at random and reads it by every command that reads records, so many
times, then prints what was found. Half of the copies are forged: their checksums fit what was changed. Those may give
other figures, but no traceback. A failure is repeated by its number: `--only N`. Exits with 1 after a failure.
"""

import argparse
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from support.damage import FOUND_OUT, Seen, damage, faults, forge, look
from support.record_kinds import make_each

MEMORY_BYTES, LONGEST_S = 6 << 30, 120


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--only", type=int, metavar="N", help="only the N-th")
    options = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    signal.signal(signal.SIGALRM, _too_long)
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        made = make_each(folder / "made")
        before = {name: _look_at_copy(one, folder) for name, one in made.items()}
        assert all(seen.error is None for some in before.values() for seen in some), before
        found: Counter[str] = Counter()
        numbers = range(options.count) if options.only is None else [options.only]
        for number in numbers:
            _one(options.seed, number, made, before, folder, found)
    said = ", ".join(f"{count:,} {what}" for what, count in sorted(found.items()))
    print(f"seed {options.seed}: {len(numbers):,} records in {time.monotonic() - began:.0f} s: {said}")
    sys.exit(1 if found["failures"] else 0)


def _one(
    seed: int, number: int, made: dict[str, Path], before: dict[str, list[Seen]], folder: Path, found: Counter[str]
) -> None:
    rng = random.Random(f"{seed}/{number}")
    kind, forged = rng.choice(list(made)), rng.random() < 0.5
    copy = _copy(made[kind], folder)
    how = "?"
    signal.alarm(LONGEST_S)
    try:
        how = (forge if forged else damage)(copy, rng)
        after = look(copy, rng)
        wrong = faults(before[kind], after, forged=forged)
    except TimeoutError:
        after, wrong = [], ["it took too long"]
    finally:
        signal.alarm(0)
    if wrong:
        found["failures"] += 1
        print(f"{number}: {kind}, {'forged, ' if forged else ''}{how}", *wrong, sep="\n    ", flush=True)
    elif after[0].code == FOUND_OUT:
        found["found out in a sentence"] += 1
    else:
        found["forged and read" if forged else "with the same figures"] += 1


def _look_at_copy(made: Path, folder: Path) -> list[Seen]:
    return look(_copy(made, folder))


def _copy(made: Path, folder: Path) -> Path:
    """Return a copy, always in one place: what commands print names it."""
    place = folder / "copy" / "runs"
    shutil.rmtree(place.parent, ignore_errors=True)
    return Path(shutil.copytree(made, place))


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TimeoutError


if __name__ == "__main__":
    main()

"""Make one round of a campaign, in a process of its own. The campaign starts it; what it found goes to a file."""

import json
import os
import random
import sys
import time
import traceback
from pathlib import Path

from benchmarks.faults.kinds import KINDS
from benchmarks.faults.round import Round, Skipped


def main() -> None:
    """Make the round that the arguments name: seed, number, kind, folder, what all share, whether it is isolated."""
    seed, number, kind, folder, prepared, isolated = sys.argv[1:]
    place = Path(folder)
    began = time.monotonic()
    round = Round(random.Random(f"{seed}/{number}"), place / "in", Path(prepared), isolated == "yes")
    skipped = None
    try:
        KINDS[kind][1](round)
    except Skipped as why:
        skipped = str(why)
    except Exception as error:
        round.problems.append(f"{type(error).__name__}: {error}".strip().splitlines()[0])
        traceback.print_exc()
    found = {"did": round.did, "problems": round.problems, "skipped": skipped, "seconds": time.monotonic() - began}
    (place / "found.json").write_text(json.dumps(found))
    os._exit(0)  # threads of a proxy may still wait for a connection


if __name__ == "__main__":
    main()

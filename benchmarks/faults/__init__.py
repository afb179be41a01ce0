"""A campaign of faults: whatever is killed, paused, filled, cut or set wrong, nothing is lost, doubled, left or untrue.

    python -m benchmarks.faults --seed 1 --rounds 200 --jobs 2
    python -m benchmarks.faults --seed 1 --only 17          a round that failed, again

A round takes a copy of a small database, starts a command as a user does, does one thing to it at a random moment, and
then asks: are the commits that were counted in the database; are the tables as an undisturbed build has made them; do
the conditions hold; is the reason in the record true; does a report of what is left work; does the next command work;
and is nothing left behind: no process, no shared memory, no temporary file, no setting of a server. All that is random
in a round follows from the seed and its number; moments are shares of the time that the command takes undisturbed.

As root each round has processes, shared memory and mounts of its own (unshare), so that what it leaves is surely its
own, and goes with it. Otherwise that is not checked, and rounds that need a mount are left out; the table says so.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))  # `support`

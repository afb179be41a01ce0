"""The warehouse's load: its rate against the server's COPY of the same rows, and against what could be reached.

    python -m benchmarks.warehouse_load [factor] [repeats]     (from the root of the repository)

See `load_rate`. The text for COPY takes 1.1 GB of temporary files for each 1 of the factor, the database 2 GB.
"""

import sys

from benchmarks import load_rate

from stallmark.schema.warehouse.tables import METADATA


def main(factor: float = 1, repeats: float = 3) -> None:
    load_rate.rate("warehouse", METADATA, {"factor": factor}, int(repeats))


if __name__ == "__main__":
    main(*map(float, sys.argv[1:3]))

"""Data are the same on any CPU: NumPy's loops for AVX-512 and AVX2 give other last bits, and another order of ties."""

import os
import subprocess
import sys

import pytest
from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

pytestmark = pytest.mark.thorough

SCALES = {"bank": {"branches": 1}, "brokerage": {"customers": 1000, "days": 1}, "mail": {"mailboxes": 20}}
DIGEST = """
import hashlib
from io import BytesIO
from pyarrow import csv
from stallmark.loaders import loader_for
from stallmark.loaders import Batch
digest = hashlib.sha256()
for workload, scale in %r.items():
    loader = loader_for(workload)
    scale = loader.scale(scale)
    for group in loader.groups(scale):
        for number in range(min(group.batches, 2)):
            for table, rows in loader.batch(7, scale, Batch(group.name, number)):
                digest.update(f"{workload} {table}".encode())
                csv.write_csv(rows, text := BytesIO())
                digest.update(text.getvalue())
print(digest.hexdigest())
"""


def digest(without: str) -> str:
    environment = os.environ | {"NPY_DISABLE_CPU_FEATURES": without}
    made = subprocess.run(
        [sys.executable, "-c", DIGEST % SCALES], env=environment, capture_output=True, text=True, check=True
    )
    return made.stdout


def test_the_data_are_those_of_a_cpu_with_fewer_features():
    dispatched = [name for name in __cpu_dispatch__ if __cpu_features__.get(name)]
    if not dispatched:
        pytest.skip("NumPy uses no feature of this CPU that it could do without.")
    assert digest("") == digest(" ".join(dispatched))

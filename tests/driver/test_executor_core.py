"""An executor keeps to one core."""

import os
import subprocess
import sys

import pytest


@pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="This system gives no process a core of its own."
)
def test_executors_are_spread_over_the_cores_one_each():
    code = (
        "import os; from stallmark.driver.executor import keep_to_one_core; "
        "keep_to_one_core({}); print(*os.sched_getaffinity(0))"
    )
    mine = sorted(os.sched_getaffinity(0), reverse=True)
    for index in range(len(mine) + 1):
        done = subprocess.run(
            [sys.executable, "-c", code.format(index)], capture_output=True, text=True, check=True
        )
        assert [int(core) for core in done.stdout.split()] == [mine[index % len(mine)]]

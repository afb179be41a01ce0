"""The conductor, in a process of its own: importing Locust patches the standard library of this one otherwise."""

import subprocess
import sys
from pathlib import Path


def test_the_conductor_holds_in_a_process_patched_by_locust():
    support = Path(__file__).parents[1] / "support"
    checks = [str(support / name) for name in ("conductor_checks.py", "load_machine_checks.py")]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--noconftest", *checks],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gevent" not in sys.modules

"""Locust's page on the conductor, in a process of its own: importing Locust patches the one that imports it."""

import subprocess
import sys
from pathlib import Path

CHECKS = Path(__file__).parents[1] / "support/locust_page_checks.py"


def test_the_page_holds_in_a_process_patched_by_locust():
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--noconftest", str(CHECKS)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_who_changes_nothing_by_hand_imports_no_web_server():
    code = "import sys, stallmark.driver.locust_conductor, stallmark.by_hand.command; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"numpy", "stallmark.by_hand.page", "stallmark.driver.locust_statistics"} & set(done.stdout.split())

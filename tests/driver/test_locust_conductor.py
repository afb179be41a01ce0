"""The conductor, in a process of its own: importing Locust patches the standard library of this one otherwise."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_the_conductor_holds_in_a_process_patched_by_locust():
    support = Path(__file__).parents[1] / "support"
    names = ("conductor_checks.py", "load_machine_checks.py", "locustfile_checks.py")
    checks = [str(support / name) for name in names]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--noconftest", *checks],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "gevent" not in sys.modules


SPARED_BY_SCENARIOS = {
    "faker", "psycopg", "pyarrow.compute", "pyarrow.parquet", "scipy.special", "sqlalchemy",
    "stallmark.analysis.run", "stallmark.analysis.step_summary", "stallmark.record.reader",
}  # fmt: skip
"""Modules that the rules of a scenario do without, and its own SQL."""


@pytest.mark.parametrize(
    ("modules", "spared"),
    [
        ("driver.locust_conductor machines.worker", {"numpy", "pyarrow", "sqlalchemy"}),
        ("driver.executor storage.arrivals", {"pyarrow", "sqlalchemy", "gevent"}),
        ("driver.locustfile_loads", {"gevent"}),
        ("driver.locust", {"pyarrow", "sqlalchemy", "psycopg", "pydantic"}),
        # Every report.
        ("cli.output live.server experiment.status", {"sqlalchemy", "faker", "psycopg", "pyodbc", "duckdb"}),
        ("experiment.runner", {"scipy.special", "duckdb"}),
        ("scenarios.model own_sql.folder", SPARED_BY_SCENARIOS),
        ("loaders.bank", {"sqlalchemy", "faker"}),
    ],
)
def test_processes_import_no_library_in_vain(modules, spared):
    """Each takes a tenth of a second and tens of megabytes, of every process."""
    code = "import sys, " + ", ".join(f"stallmark.{module}" for module in modules.split()) + "; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not spared & set(loaded)

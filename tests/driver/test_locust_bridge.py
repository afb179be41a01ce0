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
    ("module", "spared"),
    [
        ("driver.locust_bridge", {"numpy", "pyarrow", "sqlalchemy"}),
        ("machines.worker", {"numpy", "pyarrow", "sqlalchemy"}),
        ("driver.executor", {"pyarrow", "sqlalchemy", "gevent"}),
        ("driver.locust_loads", {"gevent"}),
        ("driver.locust", {"pyarrow", "sqlalchemy", "psycopg", "pydantic"}),
        ("storage.arrivals", {"pyarrow", "sqlalchemy"}),
        ("cli.output", {"sqlalchemy", "faker", "psycopg"}),  # every report
        ("live.server", {"psycopg", "pyodbc"}),
        ("experiment.runner", {"scipy.special", "duckdb"}),
        ("experiment.status", {"sqlalchemy", "faker", "duckdb"}),
        ("scenarios.model", SPARED_BY_SCENARIOS),
        ("own_sql.folder", SPARED_BY_SCENARIOS),
        ("loaders.bank", {"sqlalchemy", "faker"}),
    ],
)
def test_processes_import_no_library_in_vain(module, spared):
    """Each takes a tenth of a second and tens of megabytes, of every process."""
    code = f"import sys, stallmark.{module}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not spared & set(loaded)

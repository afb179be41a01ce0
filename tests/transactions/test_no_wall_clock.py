"""A wall clock that is set back during a run changes nothing: while the load lasts nobody looks at it."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
WALL = {"time.time", "time.time_ns", "time.localtime", "time.gmtime", "datetime.now", "datetime.utcnow", "date.today"}
# What runs in an executor, and what measures beside it.
LOAD = [
    *(ROOT / "transactions").rglob("*.py"),
    *(ROOT / "schema" / "brokerage").glob("*.py"),
    # Locust itself dates what it shows by the wall clock.
    *(path for path in (ROOT / "driver").rglob("*.py") if path.name not in ("locust.py", "locust_conductor.py")),
    ROOT / "src/stallmark/collectors/sampler.py",
]
ALLOWED = {"transactions/workload.py": ["datetime.now"]}  # once, as the load begins: test_mix.py


def looks(source: str) -> list[str]:
    """At the wall clock, as they are written."""
    called = [ast.unparse(node.func) for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [name for name in called if any(name == wall or name.endswith(f".{wall}") for wall in WALL)]


def test_nobody_looks_at_the_wall():
    found = {path.relative_to(ROOT).as_posix(): looks(path.read_text()) for path in LOAD}
    assert {path: seen for path, seen in found.items() if seen} == ALLOWED
    assert not any("from time import time" in path.read_text() for path in LOAD)


def test_a_look_is_found():
    assert looks("import time, datetime\ntime.monotonic(); time.time()\ndatetime.datetime.now(UTC)") == [
        "time.time",
        "datetime.datetime.now",
    ]

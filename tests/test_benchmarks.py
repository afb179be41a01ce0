"""The benchmarks that no test runs are whole at least: all can be imported, and the large server answers collectors."""

from importlib import import_module
from pathlib import Path

import benchmarks
import pytest

HERE = Path(next(iter(benchmarks.__path__)))


@pytest.mark.parametrize("name", [*sorted(path.stem for path in HERE.glob("*.py")), "published"])
def test_it_is_imported(name: str) -> None:
    assert import_module(f"benchmarks.{name}").__doc__


@pytest.mark.thorough
def test_the_large_server_answers_every_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mssql_python", reason="pip install mssql-python", exc_type=ImportError)
    from benchmarks import mssql

    monkeypatch.setattr(mssql, "WATCHED_S", 1)
    with mssql.responder(HERE / "mssql_views.py") as engine:
        shares = mssql.collectors(engine)  # which fails where one of them has no answer
    assert {"server_io", "waits", "statements", "row_locks", "all"} <= shares.keys()

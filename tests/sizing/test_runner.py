"""The runner of a sizing is refused on servers that cannot have the stand-in."""

import io
from pathlib import Path

import pytest
from rich.console import Console
from support.mssql_server import answering, engine_at, rows, says_it_is
from support.sizings import a_demand
from support.tds.answers import Error
from support.tds.script import Script

from stallmark.engines.mssql.engine import MssqlEngine
from stallmark.errors import StallmarkError
from stallmark.experiment.progress import Show
from stallmark.scenarios.read import read_any_scenario
from stallmark.sizing.runner import SizingRunner

BABELFISH = "Babelfish for PostgreSQL with SQL Server Compatibility - 12.0.2000.8"
AS_IT_IS = ("buffer_pool=null", "start_cache=as it is", "reset=continue")


@pytest.fixture
def script() -> Script:
    script = Script(databases=["bank", "master"])
    script.sql("@@MAX_CONNECTIONS", rows(["most"], [32_767]))
    script.sql("max_workers_count", rows(["workers"], [0]))
    script.sql("SELECT QUOTENAME", rows(["name"], ["[tester]"]))
    script.sql("dm_io_virtual_file_stats", Error(300, "VIEW SERVER STATE permission was denied"))
    return script


def refused(engine: MssqlEngine, folder: Path, *sets: str) -> str:
    """Why a sizing is refused, of which nothing is left."""
    sets = (f"replay.folder={folder}", f"replay.log_folder={folder}", *sets)
    runner = SizingRunner(
        read_any_scenario("sizing", sets), a_demand(), engine, folder / "runs", Show(Console(file=io.StringIO()))
    )
    with pytest.raises(StallmarkError) as why:
        runner.run()
    assert not runner.folder.exists() and not runner.has_results
    return str(why.value)


@pytest.mark.parametrize(
    ("says", "named"),
    [({"banner": BABELFISH}, "Babelfish has none of"), ({}, "GRANT VIEW SERVER PERFORMANCE STATE TO [tester]")],
)
def test_a_server_that_does_not_tell_its_io(script, tmp_path, says, named):
    says_it_is(script, **says)
    with answering(script) as server:
        assert named in refused(engine_at(server), tmp_path, *AS_IT_IS)


def test_a_server_whose_memory_cannot_be_capped(script, tmp_path):
    says_it_is(script, banner=BABELFISH)
    with answering(script) as server:
        assert "buffer_pool" in refused(engine_at(server), tmp_path)

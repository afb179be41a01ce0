"""Background sessions of load machines: the record has as many as there are, once the machines are there."""

import io
from pathlib import Path

from rich.console import Console
from support.manifests import a_manifest

from stallmark.driver.controller import Drive, Interrupted
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.experiment import user_run
from stallmark.experiment.progress import Show
from stallmark.experiment.runner import Runner
from stallmark.experiment.work import on_machines
from stallmark.record.manifest.course import LoadMachine
from stallmark.record.manifest.loads import Load
from stallmark.record.manifest.workload import Workload
from stallmark.record.reader import find_records


class FromMachines(Drive):
    """A drive whose users, as it says, are on another machine."""

    def start(self, *_) -> None:
        super().start()
        self.load_machines = [LoadMachine(number=1, executors=2, clock_within_ms=0.5)]

    def background_sessions(self) -> dict[str, int]:
        return {"bank": 5}

    def follow(self, *_) -> None:
        raise Interrupted("that is enough")


def test_a_run_records_those_of_its_machines(read, bank: EmbeddedEngine, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(user_run, "Drive", FromMachines)
    scenario = read(sets=("emulated_array=null", "start_cache=as it is", "reset=continue", "variants=[{name: a}]"))
    runner = Runner(scenario, EmbeddedEngine(bank.server, "bank"), tmp_path, Show(Console(file=io.StringIO())))
    runner.run()
    [record] = find_records([runner.folder])
    assert record.manifest.workload.background_sessions == 5


def test_of_several_loads_each_has_its_own():
    users = {"kind": "users", "counts": ()}
    loads = (
        Load(name="shares", workload=Workload(name="brokerage", background_sessions=1), **users),
        Load(name="reports", kind="streams", workload=Workload(name="warehouse"), counts=()),
        Load(name="scan", kind="raw", counts=()),
        Load(name="mail", workload=Workload(name="mail"), **users),
    )
    manifest = a_manifest(loads=loads)
    changed = manifest.changed(**on_machines(manifest, {"shares": 4, "mail": 2}))
    assert [one.workload and one.workload.background_sessions for one in changed.loads] == [4, 0, None, 2]
    assert changed.workload == manifest.workload

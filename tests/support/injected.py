"""A database as it would be with something wrong in it, and what the conditions of its workload find there."""

from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

from stallmark.engines.base import Engine
from stallmark.engines.postgres.embedded.engine import EmbeddedEngine
from stallmark.transactions import checks
from stallmark.transactions.checks import ConditionResult
from stallmark.transactions.workload import Workload


class Injected(EmbeddedEngine):
    """Each connection puts in what is wrong and never commits."""

    def __init__(self, good: EmbeddedEngine, database: str, wrong: str):
        super().__init__(good.server, database)
        self._wrong = wrong

    def connect(self, application: str = "stallmark-collector"):
        connection = super().connect(application)
        connection.autocommit = False
        connection.execute(self._wrong)
        return connection


def condition_files(workload: Workload) -> dict[str, str]:
    """The names of the files of a workload's conditions, by the conditions' own."""
    folder = files(workload.package).joinpath("conditions")
    texts = {path.read_text(): path.name.removesuffix(".sql") for path in folder.iterdir()}
    return {condition.name: texts[condition.sql] for condition in workload.conditions}


def check(
    engine: Engine, workload: Workload, scale: Mapping[str, Any], *only: str, driven: bool = False
) -> dict[str, ConditionResult]:
    """Return the findings of all conditions, or of those of some files; by their files."""
    of_name = condition_files(workload)
    chosen = [condition for condition in workload.conditions if not only or of_name[condition.name] in only]
    found = checks.run(engine, replace(workload, conditions=chosen), scale, driven=driven)
    return {of_name[one.name]: one for one in found}

"""A database as it would be with something wrong in it, and what the conditions of its workload find there."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stallmark.engines import sql_file
from stallmark.engines.base import Engine
from stallmark.engines.postgres.embedded_engine import EmbeddedEngine
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


def condition_keys(workload: Workload) -> dict[str, str]:
    """Return the keys of a workload's conditions in its file, by their names."""
    statements = sql_file.statements(f"{workload.package}.conditions")
    return {statement.title: statement.key.split(", ")[0] for statement in statements}


def check(
    engine: Engine, workload: Workload, scale: Mapping[str, Any], *only: str, driven: bool = False
) -> dict[str, ConditionResult]:
    """Return the results of all conditions, or of those with some keys; by their keys."""
    keys = condition_keys(workload)
    chosen = [condition for condition in workload.conditions if not only or keys[condition.name] in only]
    results = checks.run(engine, replace(workload, conditions=chosen), scale, driven=driven)
    return {keys[result.name]: result for result in results}

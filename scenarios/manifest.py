"""What a run record says of itself: everything that decides its figures, and no secret."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import stallmark
from stallmark.driver import machine, storage
from stallmark.driver.collectors.base import Collector
from stallmark.driver.engines.base import Engine
from stallmark.driver.plan import Plan
from stallmark.loaders.ledger import Entry
from stallmark.scenarios.model import Scenario, Variant
from stallmark.transactions.workload import Workload


def manifest(
    scenario: Scenario,
    variant: Variant,
    place: dict[str, Any],
    workload: Workload,
    engine: Engine,
    memory: dict[str, Any],
    loaded: Entry,
    collectors: Sequence[Collector],
) -> dict[str, Any]:
    """`place` is the run's place in its experiment: experiment, repeat, sequence."""
    identity = engine.identity()
    return {
        "stallmark": stallmark.__version__,
        **place,
        "scenario": scenario.model_dump(mode="json"),
        "variant": variant.model_dump(mode="json"),
        "started": now(),
        "steps": _steps(scenario.plan()),
        "workload": scenario.workload.model_dump(mode="json") | {"version": workload.version},
        "server": {
            "product": identity.product,
            "version": identity.version_text,
            "settings": engine.settings(),
        },
        "memory": memory,
        "database": {
            "bytes_before": engine.bytes_used(),
            "bytes_after": None,
            "compressibility": loaded.compressibility,
        },
        "cache_start": scenario.start_cache,
        "reset": scenario.reset,
        "device": storage.facts(engine),
        "collectors": {collector.name: _describe(collector) for collector in collectors},
        "conditions": [],
        "machine": machine.facts(),
        "notes": [],
    }


def now() -> str:
    """UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _steps(plan: Plan) -> list[dict[str, Any]]:
    arrivals = plan.arrivals
    return [
        {
            "name": step.name,
            "users": step.users,
            "begin_s": step.begin_s,
            "measure_s": step.measure_s,
            "end_s": step.end_s,
            "arrivals": arrivals.kind,
            "rate": arrivals.rate,
            "think_ms": arrivals.think_ms,
        }
        for step in plan.steps
    ]


def _describe(collector: Collector) -> dict[str, Any]:
    why = collector.unavailable()
    return {
        "title": collector.title,
        "help": collector.help,
        "interval_s": collector.interval_s,
        "unavailable": why,
        "limited": None if why else collector.limited(),
    }

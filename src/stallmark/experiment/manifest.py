"""What a run record says of itself: everything that decides its figures, and no secret."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import stallmark
from stallmark.analysis.queries.summary import PHASES
from stallmark.collectors.base import Collector
from stallmark.driver.timeline import Timeline
from stallmark.engines.base import Engine
from stallmark.loaders.ledger import Entry
from stallmark.record import machine
from stallmark.scenarios.model import AnyScenario, QueryScenario, Scenario, Variant
from stallmark.scenarios.service_level import described as described_slo
from stallmark.storage.describe import describe
from stallmark.transactions.workload import Transaction, Workload


def manifest(
    scenario: AnyScenario,
    variant: Variant,
    place: dict[str, Any],
    described: dict[str, Any],
    engine: Engine,
    memory: dict[str, Any],
    loaded: Entry,
    collectors: Sequence[Collector],
) -> dict[str, Any]:
    """`place` is the run's place in its experiment: experiment, repeat, sequence; `described`: see `of_load` and
    `of_queries`."""
    identity = engine.identity()
    return {
        "stallmark": stallmark.__version__,
        **place,
        "scenario": scenario.model_dump(mode="json"),
        "variant": variant.model_dump(mode="json"),
        "started": now(),
        **described,
        "server": {"product": identity.product, "version": identity.version_text, "settings": engine.settings()},
        "memory": memory,
        "database": {
            "bytes_before": engine.bytes_used(),
            "bytes_after": None,
            "compressibility": loaded.compressibility,
        },
        "cache_start": scenario.start_cache,
        "reset": scenario.reset,
        **({"slo": described_slo(scenario.slo)} if scenario.slo else {}),
        "device": device_facts(engine),
        "collectors": {collector.name: _describe(collector) for collector in collectors},
        "conditions": [],
        "machine": machine.facts(),
        "notes": [],
    }


def now() -> str:
    """UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def of_load(scenario: Scenario, workload: Workload, streams: int) -> dict[str, Any]:
    """What users do, and when, and how many `streams` of queries are there beside them."""
    described = {"steps": _steps(scenario.timeline()), "workload": _workload(scenario, workload)}
    if scenario.concurrent_streams:
        described["beside"] = {"streams": streams, "timeout_s": scenario.concurrent_streams.timeout}
    return described


def of_queries(scenario: QueryScenario, workload: Workload, dops: Sequence[int | None]) -> dict[str, Any]:
    """What streams do; "steps", one for each phase, come as phases end. `dops`: those that queries are to have, None as
    the server is set."""
    choice = scenario.workload
    return {
        "steps": [],
        "workload": {
            "name": choice.name,
            "scale": dict(choice.scale),
            "seed": choice.seed,
            "version": workload.version,
            "transactions": [],
        },
        "queries": {
            "run": scenario.queries.run,
            "phases": list(scenario.queries.phases),
            "streams": scenario.streams if "throughput" in scenario.queries.phases else None,
            "refresh": scenario.queries.refreshes,
            "dops": list(dops),
            "timeout_s": scenario.queries.timeout,
        },
    }


def phase_step(name: str, streams: int, began_s: float, ended_s: float) -> dict[str, Any]:
    """A phase that has ended, as a step: with the seconds over which the server's counters are taken."""
    return {
        "name": PHASES[name],
        "phase": name,
        "users": streams,
        "begin_s": began_s,
        "measure_s": began_s,
        "end_s": ended_s,
        "arrivals": "closed",
    }


def _workload(scenario: Scenario, workload: Workload) -> dict[str, Any]:
    """Without what is known only when the database is ready: "opening" and "counted"."""
    choice, timeline = scenario.workload, scenario.timeline()
    asked = choice.model_dump(mode="json")
    return {name: value for name, value in asked.items() if value or name not in ("mix", "locality")} | {
        "version": workload.version,
        "transactions": _transactions(workload, choice.deck()),
        "primary": workload.primary.name if workload.primary else None,
        "nominal_rate": workload.nominal_rate(choice.scale),
        "background_sessions": timeline.all_background_sessions([timeline.executors()]),
    }


def _transactions(workload: Workload, deck: Mapping[str, int]) -> list[dict[str, Any]]:
    """What may happen in a run. `cards` of those that others give rise to: how many come of one whole deck."""

    def described(kind: type[Transaction], source: str, cards: float, **more: Any) -> dict[str, Any]:
        known = {"name": kind.name, "cards": cards, "source": source}
        return known | {"limit_s": kind.limit_s, "reads_only": kind.reads_only} | more

    return [
        *(described(kind, "users", deck[kind.name]) for kind in workload.deck),
        *(
            described(kind, "followers", round(deck[of.name] * each, 2), follows={"transaction": of.name, "each": each})
            for kind, (of, each) in workload.background.followers.items()
        ),
        *(described(kind, "timer", 0, every_s=every_s) for kind, every_s in workload.background.timers.items()),
    ]


def _steps(timeline: Timeline) -> list[dict[str, Any]]:
    arrivals = timeline.arrivals
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
        for step in timeline.steps
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


def device_facts(engine: Engine) -> dict[str, Any]:
    """Which devices a server of ours lies on, emulated ones by their model, real ones by name.

    {"emulated": …, "data": {…}, "wal": {…}}; without data and WAL for a server that is not ours.

    A block device that is a lab's says so under "lab".
    """
    models = engine.devices.models
    described = {name: describe(folder) for name, folder in engine.directories().items()}
    for name, model in models.items():
        described[name] = asdict(model)
    emulated = bool(models) or any("lab" in device for device in described.values())
    return {"emulated": emulated, **described}

"""What the experiment ran on, from the manifests: said once where all runs agree, by run where they differ."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stallmark.driver.analysis.summary import ExperimentSummary, RunSummary
from stallmark.driver.report import units
from stallmark.driver.report.labels import EMULATED
from stallmark.driver.report.tables import Cell, Table

SECRET = ("password", "secret", "token", "passwd", "pwd")


@dataclass(frozen=True)
class Facts:
    title: str
    pairs: list[tuple[str, str]]


def facts(experiment: ExperimentSummary) -> list[Facts]:
    """Groups of name and value; a value on which runs differ lists them all."""
    manifests = [run.manifest for run in experiment.runs]
    groups = [
        ("Workload", ["workload"]),
        ("Load", ["reset", "cache_start"]),
        ("Server", ["server"]),
        ("Machine", ["machine"]),
    ]
    result = []
    for title, keys in groups:
        flattened = []
        for manifest in manifests:
            chosen = {k: v for k in keys if (v := manifest.get(k)) not in (None, {})}
            if "server" in chosen:
                chosen["server"] = {k: v for k, v in chosen["server"].items() if k != "settings"}
            flattened.append(dict(flatten(chosen, drop_first=title != "Load")))
        if pairs := merge(flattened):
            result.append(Facts(title, pairs))
    versions = merge([{"stallmark": str(m.get("stallmark", units.NONE))} for m in manifests])
    return [*result, Facts("Tool", versions)]


def settings(experiment: ExperimentSummary) -> list[tuple[str, str]]:
    return merge(
        [
            {k: str(v) for k, v in (run.manifest.get("server", {}).get("settings") or {}).items()}
            for run in experiment.runs
        ]
    )


def runs(experiment: ExperimentSummary) -> Table:
    return Table(
        ["run", "record", "started (UTC)", "status", "pool set", "reached", "cache", "growth", "cost"],
        [_run_row(run) for run in experiment.runs],
        frozenset({0, 1, 2, 3, 6}),
        [
            "Pool set and reached: the memory cap as configured, and as the server reported it. Growth: of the "
            "database over the run. Cost: CPU of all collectors, as a share of one core."
        ],
    )


def _run_row(run: RunSummary) -> list[str | Cell]:
    manifest = run.manifest
    memory = manifest.get("memory") or {}
    configured, reached = memory.get("configured_bytes"), memory.get("reached_bytes")
    database = manifest.get("database") or {}
    grown = units.size(database.get("bytes_before"))
    if run.growth_share is not None:
        grown += f" {units.signed_share(run.growth_share)}"
    apart = configured is not None and reached is not None and configured != reached
    emulated = any(s.emulated for s in run.steps)
    return [
        f"{run.title} ({EMULATED})" if emulated else run.title,
        run.folder,
        run.started.replace("T", " ")[:16],
        Cell("incomplete", "bad") if run.incomplete_because else "complete",
        units.size(configured),
        Cell(units.size(reached), "apart") if apart else units.size(reached),
        str(manifest.get("cache_start") or units.NONE),
        grown,
        units.share(run.collector_cost_share),
    ]


def devices(experiment: ExperimentSummary) -> list[Facts]:
    """One group per distinct device; emulated ones carry the word in their title."""
    result: list[Facts] = []
    for run in experiment.runs:
        device = run.manifest.get("device") or {}
        label = f"{EMULATED} device" if device.get("emulated") else "Device"
        for role in ("data", "wal"):
            if isinstance(device.get(role), Mapping):
                names = " and ".join(r for r in ("data", "wal") if device.get(r) == device[role]).replace("wal", "WAL")
                group = Facts(f"{label}: {names}", list(flatten(device[role])))
                if group not in result:
                    result.append(group)
    return result


def collectors(experiment: ExperimentSummary) -> Table | None:
    seen: dict[str, list[str | Cell]] = {}
    for run in experiment.runs:
        declared = run.manifest.get("collectors") or {}
        for name, one in declared.items():
            title = str(one.get("title", name))
            off = run.collectors_off.get(title) or one.get("unavailable")
            if off or title not in seen:
                seen[title] = [
                    title,
                    str(one.get("help") or ""),
                    units.seconds(one.get("interval_s")),
                    Cell(f"off: {off}", "apart") if off else "on",
                ]
        for title, why in run.collectors_off.items():
            seen.setdefault(title, [title, "", units.NONE, Cell(f"off: {why}", "apart")])
    if not seen:
        return None
    return Table(["collector", "what it reads", "every", "state"], list(seen.values()), frozenset({0, 1, 3}))


def notes(experiment: ExperimentSummary) -> list[str]:
    return list(dict.fromkeys(str(n) for run in experiment.runs for n in run.manifest.get("notes") or []))


def flatten(value: Mapping[str, Any], drop_first: bool = False, path: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Nested manifests as name and text. Values whose name says secret are never shown."""
    pairs = []
    for key, item in value.items():
        here = [*path, str(key).replace("_", " ")]
        if isinstance(item, Mapping):
            pairs += flatten(item, path=[] if drop_first else here)
        elif item is not None and item != "" and not any(word in str(key).lower() for word in SECRET):
            if isinstance(item, int) and not isinstance(item, bool) and str(key).endswith("bytes"):
                text = units.size(item)
                here[-1] = here[-1].removesuffix("bytes").strip() or "size"
            elif isinstance(item, list | tuple):
                text = ", ".join(str(i) for i in item)
            elif isinstance(item, bool):
                text = "yes" if item else "no"
            else:
                text = str(item)
            pairs.append((" ".join(here), text))
    return pairs


def merge(maps: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    """Every name once, with all its values in the order they appear."""
    names = dict.fromkeys(name for one in maps for name in one)
    return [(n, " · ".join(dict.fromkeys(m[n] for m in maps if n in m))) for n in names]

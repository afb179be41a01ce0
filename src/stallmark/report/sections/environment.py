"""The environment of the experiment, from the manifests: values on which runs differ are all listed."""

from collections.abc import Mapping, Sequence
from typing import Any

from stallmark import format
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.run import RunSummary
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Server
from stallmark.record.manifest.storage import Role
from stallmark.redact import names_secret
from stallmark.report.document import Block, Bullets, Facts, Fold, Pairs, Section, Shown, Title, Words, shown
from stallmark.report.table import Cell, Rows, Table, number, word
from stallmark.report.text import read as read_words
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED


def facts(experiment: ExperimentSummary) -> list[Pairs]:
    """Return groups of name and value; a value on which runs differ lists them all."""
    sections = [_sections(run.manifest) for run in experiment.runs]
    merged = {title: merge([dict(flatten(one[title])) for one in sections]) for one in sections for title in one}
    return [Pairs(pairs, title) for title, pairs in merged.items() if pairs]


def _sections(manifest: Manifest) -> dict[str, Mapping[str, Any]]:
    ratio = manifest.database.compressibility
    elsewhere = {"transactions", "counted"}  # shown where they matter
    workload = {name: value for name, value in manifest.workload.facts().items() if value and name not in elsewhere}
    return {
        "Workload": {name: format.spoken(value) for name, value in flatten(workload)}
        | ({"compressible, LZ4 on sampled pages": f"{ratio:.1f} : 1"} if ratio else {}),
        "Server": {"product": manifest.server.product, "version": manifest.server.version},
        "Machine": manifest.machine.facts(),
        **{
            f"Load machine {one.number}": {k: v for k, v in one.facts().items() if k != "number"}
            for one in manifest.load_machines
        },
        "Run": {
            "between variants": manifest.reset,
            "cache at start": manifest.cache_start,
            "Stallmark": manifest.stallmark,
        },
    }


def settings(experiment: ExperimentSummary) -> list[tuple[str, str]]:
    """Return the server's settings under their own names, without secrets, and where its files lie."""
    servers = [run.manifest.server for run in experiment.runs]
    maps = [one.settings | one.placement | one.momentary | _unreadable(one) for one in servers]
    return merge([{k: v for k, v in one.items() if not names_secret(k)} for one in maps])


def _unreadable(server: Server) -> dict[str, str]:
    return {f"not readable: {part}": why for part, why in server.unreadable.items()}


def runs(experiment: ExperimentSummary) -> Table:
    return Rows(experiment.runs).table(
        word("run", lambda run: run.title),
        word("record", lambda run: run.folder),
        word(f"started ({format.zone()})", lambda run: format.minute(run.started)),
        word("status", lambda run: Cell("incomplete", "bad") if run.incomplete_because else "complete"),
        number("pool set", lambda run: run.manifest.memory.configured_bytes, format.size),
        number("reached", _reached),
        word("cache", lambda run: run.manifest.cache_start or format.NONE),
        number("growth", _grown),
        number("cost", lambda run: run.collector_cost_share, format.share),
        number("dated to ms", lambda run: run.clock.uncertainty_s * 1000 if run.clock else None),
        notes=[read_words.RUNS],
    )


def ends(experiment: ExperimentSummary) -> list[Words]:
    """Return why runs are incomplete."""
    incomplete = [run for run in experiment.runs if run.incomplete_because]
    return [Words(f"{run.title}: {run.incomplete_because}", "footnote bad") for run in incomplete]


def _reached(run: RunSummary) -> str | Cell:
    configured, reached = run.manifest.memory.configured_bytes, run.manifest.memory.reached_bytes
    apart = configured is not None and reached is not None and configured != reached
    return Cell(format.size(reached), "apart") if apart else format.size(reached)


def _grown(run: RunSummary) -> str:
    before = format.size(run.manifest.database.bytes_before)
    return before if run.growth_share is None else f"{before} {format.signed(run.growth_share)}"


_FILES: Mapping[Role, str] = {"data": "data", "wal": "WAL"}


def devices(experiment: ExperimentSummary) -> list[Pairs]:
    """Return one group per distinct device; the title of an emulated one carries EMULATED. A device of some variants
    alone is named with them."""
    variants_on: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for run in experiment.runs:
        both = {"data": run.manifest.devices.data, "WAL": run.manifest.devices.wal}
        for device in filter(None, both.values()):
            names = " and ".join(name for name, one in both.items() if one == device)
            label = f"{EMULATED} device" if device.emulated_array else "Device"
            array = device.emulated_in_process
            known = array.model_dump(exclude={"block_device"}) if array else device.facts()
            if not array:
                lay = run.manifest.devices.folders
                known |= {
                    f"folder of {_FILES[role]}": lay[role] for role in lay if run.manifest.devices.of(role) == device
                }
            on = variants_on.setdefault((f"{label}: {names}", tuple(flatten(known))), [])
            if (variant := run.manifest.variant.name) not in on:
                on.append(variant)
    every = {run.manifest.variant.name for run in experiment.runs}
    return [
        Pairs(pairs, title if set(on) == every else f"{title} of {format.quoted(on)}")
        for (title, pairs), on in variants_on.items()
    ]


def collectors(experiment: ExperimentSummary) -> Table | None:
    seen: dict[str, list[str | Cell]] = {}
    for run in experiment.runs:
        for one in run.manifest.collectors.values():
            off = run.collectors_off.get(one.title) or one.unavailable
            if off or one.title not in seen:
                state = Cell(f"off: {off}", "apart") if off else "on"
                seen[one.title] = [one.title, one.help, format.seconds(one.interval_s), state]
        for title, why in run.collectors_off.items():
            seen.setdefault(title, [title, "", format.NONE, Cell(f"off: {why}", "apart")])
    if not seen:
        return None
    return Table(["collector", "what it reads", "every", "state"], list(seen.values()), frozenset({0, 1, 3}))


def notes(experiment: ExperimentSummary) -> list[str]:
    """Return what happened in the runs beside their figures."""
    found = [[*map(sentence, run.notes), *run.manifest.notes] for run in experiment.runs]
    return list(dict.fromkeys(note for notes in found for note in notes))


SIZES = ("size", "move")
"""Names of sizes in bytes, in the description of an array, that do not say so."""


def flatten(value: Mapping[str, Any], path: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return a nested manifest as pairs of name and text, without values whose name marks a secret."""
    pairs = []
    for key, item in value.items():
        name = " ".join([*path, key.replace("_", " ")])
        if item in (None, "") or names_secret(key):
            continue
        if isinstance(item, Mapping):
            pairs += flatten(item, [*path, key.replace("_", " ")])
        elif isinstance(item, bool):
            pairs.append((name, "yes" if item else "no"))
        elif isinstance(item, float):
            pairs.append((name, f"{item:.12g}"))
        elif isinstance(item, int) and (name.endswith("bytes") or key in SIZES):
            pairs.append((name.removesuffix("bytes").strip() or "size", format.size(item)))
        elif isinstance(item, list | tuple):
            pairs.append((name, ", ".join(map(str, item))))
        else:
            pairs.append((name, str(item)))
    return pairs


def merge(maps: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    """Return every name once, with all its values in the order they appear."""
    names = dict.fromkeys(name for one in maps for name in one)
    return [(n, " · ".join(dict.fromkeys(m[n] for m in maps if n in m))) for n in names]


def section(experiment: ExperimentSummary) -> Section:
    everything = settings(experiment)
    blocks: list[Block] = [
        Title("Runs"),
        Shown(runs(experiment), "Runs"),
        *ends(experiment),
        Facts([*facts(experiment), *devices(experiment)]),
        *shown(collectors(experiment), "Collectors", "Collectors"),
        *([Fold(f"Server settings ({len(everything)})", [Pairs(everything)])] if everything else []),
    ]
    if said := notes(experiment):
        blocks += [Title("Notes of the runs"), Bullets(said)]
    return Section("environment", "Environment", blocks, "server, machine, devices, runs")

"""The tables of the environment: the values of manifests, the storage itself, and probes of the storage."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from stallmark import format
from stallmark.analysis.compare.settings import settings_in_effect
from stallmark.analysis.compare.sides import variant
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.probe_comparison import DRIFTED, UNKNOWN, AgainstProbe, Drift, DriftRow, DriftVerdict
from stallmark.analysis.read.active_set import ActiveSet, FlashUse
from stallmark.analysis.run import RunSummary
from stallmark.record.devices import data_device_label
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Server
from stallmark.record.manifest.storage import HookResult, Role
from stallmark.redact import names_secret
from stallmark.report.columns import by_reason, step_labels, step_rows
from stallmark.report.document import (
    Block,
    Bullets,
    Facts,
    Fold,
    Note,
    Notes,
    Pairs,
    Section,
    Shown,
    Title,
    Words,
    table_blocks,
)
from stallmark.report.sections.timeline import active_figures
from stallmark.report.table import Cell, Rows, Table, fields, if_known, named_rows, number, word
from stallmark.report.text import device as device_words
from stallmark.report.text import sentence, term
from stallmark.report.text import server as read_words
from stallmark.report.text.cautions import during
from stallmark.report.text.device import EMULATED
from stallmark.report.text.probe_comparison import preconditioned

# The environment of the experiment, from the manifests: values on which runs differ are all listed.


def facts(experiment: ExperimentSummary) -> list[Pairs]:
    """Return groups of name and value; a value on which runs differ lists them all."""
    sections = [_sections(run.manifest) for run in experiment.runs]
    merged = {
        title: merge([dict(flatten(section[title])) for section in sections])
        for section in sections
        for title in section
    }
    return [Pairs(pairs, title) for title, pairs in merged.items() if pairs]


def _sections(manifest: Manifest) -> dict[str, Mapping[str, Any]]:
    ratio = manifest.database.compressibility
    elsewhere = {"derived_from", "transactions", "statements", "counted"}  # shown where they matter
    workload = {name: value for name, value in manifest.workload.facts().items() if value and name not in elsewhere}
    return {
        "Workload": {name: format.display_name(value) for name, value in flatten(workload)}
        | ({"compressible, LZ4 on sampled pages": f"{ratio:.1f} : 1"} if ratio else {}),
        "Server": {"product": manifest.server.product, "version": manifest.server.version},
        "Machine": manifest.machine.facts(),
        **{
            f"Load machine {machine.number}": {k: v for k, v in machine.facts().items() if k != "number"}
            for machine in manifest.load_machines
        },
        "Run": {
            "between variants": manifest.reset,
            "cache at start": manifest.cache_start,
            "Stallmark": manifest.stallmark,
        },
    }


def settings(experiment: ExperimentSummary) -> list[tuple[str, str]]:
    """Return the server's settings under their own names, without secrets, and the locations of its files."""
    servers = [run.manifest.server for run in experiment.runs]
    maps = [server.settings | server.placement | server.momentary | _unreadable(server) for server in servers]
    return merge([{k: v for k, v in values.items() if not names_secret(k)} for values in maps])


def _unreadable(server: Server) -> dict[str, str]:
    return {f"not readable: {part}": reason for part, reason in server.unreadable.items()}


def runs(experiment: ExperimentSummary) -> Table:
    return Rows(experiment.runs).table(
        word("run", lambda run: run.title),
        word("record", lambda run: run.folder),
        word(f"started ({format.zone()})", lambda run: format.minute(run.started)),
        word("status", lambda run: Cell("incomplete", "bad") if run.incomplete_because else "complete"),
        number("pool set", lambda run: run.manifest.memory.configured_bytes, format.size),
        number("reached", _reached_size),
        if_known(word("settings chosen", _settings_chosen)),
        word("cache", lambda run: run.manifest.cache_start or format.NONE),
        number("growth", _database_growth),
        number("cost", lambda run: run.collector_cost_share, format.share),
        number("times ± ms", lambda run: run.clock.uncertainty_s * 1000 if run.clock else None),
        notes=[read_words.RUNS],
    )


def ends(experiment: ExperimentSummary) -> list[Words]:
    """Return the reasons for incomplete runs."""
    incomplete = [run for run in experiment.runs if run.incomplete_because]
    return [Words(f"{run.title}: {run.incomplete_because}", "footnote bad") for run in incomplete]


def _settings_chosen(run: RunSummary) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings_in_effect(run.manifest).items()) or format.NONE


def _reached_size(run: RunSummary) -> str | Cell:
    configured, reached = run.manifest.memory.configured_bytes, run.manifest.memory.reached_bytes
    apart = configured is not None and reached is not None and configured != reached
    return Cell(format.size(reached), "apart") if apart else format.size(reached)


def _database_growth(run: RunSummary) -> str:
    before = format.size(run.manifest.database.bytes_before)
    return before if run.growth_share is None else f"{before} {format.signed(run.growth_share)}"


_FILES: Mapping[Role, str] = {"data": "data", "wal": "WAL"}


def devices(experiment: ExperimentSummary) -> list[Pairs]:
    """Return one group per distinct device; the title of an emulated one carries EMULATED. A device that only some
    variants used is named with them."""
    variants_on: dict[tuple[str, tuple[tuple[str, str], ...]], list[str]] = {}
    for run in experiment.runs:
        # One device under both is one group.
        both = {"data": run.manifest.devices.data, "WAL": run.manifest.devices.wal}
        for device in filter(None, both.values()):
            names = " and ".join(name for name, other in both.items() if other == device)
            label = f"{EMULATED} device" if device.emulated_array else "Device"
            array = device.emulated_in_process
            known = array.model_dump(exclude={"block_device"}) if array else device.facts()
            if not array:
                lay = run.manifest.devices.folders
                known |= {
                    f"folder of {_FILES[role]}": lay[role]
                    for role in lay
                    if run.manifest.devices.for_role(role) == device
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
        for collector in run.manifest.collectors.values():
            off = run.collectors_off.get(collector.title) or collector.unavailable
            # A collector that failed in any run is shown as off, with the reason.
            if off or collector.title not in seen:
                state = Cell(f"off: {off}", "apart") if off else "on"
                seen[collector.title] = [collector.title, collector.help, format.seconds(collector.interval_s), state]
        for title, reason in run.collectors_off.items():
            seen.setdefault(title, [title, "", format.NONE, Cell(f"off: {reason}", "apart")])
    if not seen:
        return None
    return Table(["collector", "source", "every", "state"], list(seen.values()), frozenset({0, 1, 3}))


def notes(experiment: ExperimentSummary) -> list[str]:
    """Return the notes on events during the runs."""
    notes_by_run = [[*map(sentence, run.notes), *run.manifest.notes] for run in experiment.runs]
    return list(dict.fromkeys(note for notes in notes_by_run for note in notes))


SIZES = ("size", "move")
"""Keys of an array's description that hold bytes without having the unit in their name."""


def flatten(value: Mapping[str, Any], path: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return a nested manifest as pairs of name and text, without values whose name marks a secret."""
    pairs = []
    for key, item in value.items():
        name = " ".join([*path, key.replace("_", " ")])
        # A name is enough to suspect a secret: its value must not reach a report.
        if item in (None, "") or names_secret(key):
            continue
        if isinstance(item, Mapping):
            pairs += flatten(item, [*path, key.replace("_", " ")])
        elif isinstance(item, bool):
            # Before the numbers, because a bool is an int as well.
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
    names = dict.fromkeys(name for values in maps for name in values)
    return [(n, " · ".join(dict.fromkeys(m[n] for m in maps if n in m))) for n in names]


def environment_section(experiment: ExperimentSummary) -> Section:
    everything = settings(experiment)
    blocks: list[Block] = [
        Title("Runs"),
        Shown(runs(experiment), "Runs"),
        *ends(experiment),
        Facts([*facts(experiment), *devices(experiment)]),
        *table_blocks(collectors(experiment), "Collectors", "Collectors"),
        *([Fold(f"Server settings ({len(everything)})", [Pairs(everything)])] if everything else []),
    ]
    if run_notes := notes(experiment):
        blocks += [Title("Notes of the runs"), Bullets(run_notes)]
    return Section("environment", "Environment", blocks, "server, machine, devices, runs")


# The tables of probes of the raw storage that were made before and after runs.


def reads_against_probe(experiment: ExperimentSummary) -> Table | None:
    """Return every step's reads next to those of the raw storage before its run, or None if nothing was probed."""
    labels = step_labels(experiment)
    rows = [(labels[step.key], step.storage.probe) for step in experiment.steps if step.storage.probe]
    return database_reads_table(rows) if rows else None


def drift_of_runs(experiment: ExperimentSummary) -> Table | None:
    """Return the drift of raw storage over the runs of every variant and between them; None without two probes."""
    return drift_table(experiment.drifts) if experiment.drifts else None


def drift_table(drifts: Sequence[tuple[Sequence[str], Drift]]) -> Table:
    """Return probes before and after, step by step. Names are of the run between two probes, or of both runs."""
    labelled = [(during(names), drift) for names, drift in drifts]
    rows = [(label, (drift, row)) for label, drift in labelled for row in drift.rows or (None,)]
    return named_rows("storage", rows).table(
        fields(DriftRow, lambda pair: pair[1]),
        number("change", lambda pair: _change(pair[1]) if pair[1] else None),
        word("verdict", lambda pair: _verdict((pair[1] or pair[0]).verdict)),
        notes=dict.fromkeys(f"{label}: {sentence(drift.finding)}" for label, drift in labelled),
    )


def _change(row: DriftRow) -> str:
    change = format.signed(row.ratio - 1)
    if row.low is None or row.high is None:
        return change
    return f"{change} ({format.signed(row.low - 1)} to {format.signed(row.high - 1)})"


def _verdict(verdict: DriftVerdict) -> Cell:
    return Cell(term(verdict), "bad" if verdict in (DRIFTED, UNKNOWN) else "")


def database_reads_table(rows: Sequence[tuple[str, AgainstProbe]]) -> Table:
    """Return the reads of databases next to those of raw storage with as many outstanding."""
    return named_rows("run", rows).table(
        fields(AgainstProbe),
        notes=[
            *(f"{label}: {sentence(row.finding)}" for label, row in rows if row.raw_iops is None),
            *dict.fromkeys(sentence(row.caution) for _, row in rows if row.caution),
        ],
    )


# The tables of the storage itself: its description, preparation, flash and active set.


def described_arrays(experiment: ExperimentSummary) -> Table | None:
    """Return the described array of every variant, side by side, or None if no scenario describes one."""
    variants = {variant(run): run.manifest for run in experiment.runs}
    if not any(manifest.array for manifest in variants.values()):
        return None
    facts = {
        name: dict(flatten(manifest.array.facts() if manifest.array else {})) for name, manifest in variants.items()
    }
    rows: list[Sequence[str | Cell]] = [
        ["device", *(_device(manifest) for manifest in variants.values())],
        *(
            [key, *(facts[name].get(key, format.NONE) for name in variants)]
            for key in dict.fromkeys(key for fact in facts.values() for key in fact)
        ),
    ]
    note = device_words.DESCRIBED_ARRAY
    return Table(["", *variants], rows, frozenset(range(len(variants) + 1)), [note])


def preparations(experiment: ExperimentSummary) -> list[Note]:
    """Return the hooks and preconditioning before runs.

    An action before several repeats of a variant is listed once, though each of their records holds it.
    """
    notes = []
    for _, alike in groupby(experiment.runs, lambda run: (variant(run), run.manifest.hook, run.manifest.precondition)):
        first, *more = alike
        title = f"{first.title} to {more[-1].title.removeprefix(variant(first)).strip(', ')}" if more else first.title
        if hook := first.manifest.hook:
            notes.append(_in_words(title, hook))
        if conditioned := first.manifest.precondition:
            notes.append(Note(title, preconditioned(conditioned)))
    return notes


def flash(experiment: ExperimentSummary) -> Table | None:
    """Return the use of flash in every step, or None if no device's flash was counted."""
    return step_rows(experiment, lambda step: filter(None, [step.storage.flash])).table_if_any(
        word("flash", lambda use: f"{format.size(use.size_bytes)} {use.kind}"),
        fields(FlashUse),
        number("filled", lambda use: None if use.used_bytes is None else use.used_bytes / use.size_bytes, format.share),
        notes=[device_words.FLASH],
    )


def active(experiment: ExperimentSummary) -> Table | None:
    """Return the active set of every step and the sizes that could hold it, or None if neither is known."""
    rows = step_rows(experiment, lambda step: filter(_is_worth_showing, filter(None, [step.storage.active])))
    extents = sorted({active.extent_bytes for active in rows.items if active.extent_bytes})
    how = f" in extents of {' or '.join(map(format.size, extents))}" if extents else ""
    return rows.table_if_any(
        number("active", _active_size),
        fields(ActiveSet),
        number(
            "array’s DRAM", lambda active: Cell(format.size(active.dram_bytes), "apart" if active.fits_dram else "")
        ),
        number("flash", lambda active: Cell(format.size(active.flash_bytes), "apart" if active.fits_flash else "")),
        notes=[device_words.active(how=how)],
    )


def warnings(experiment: ExperimentSummary) -> list[tuple[str, str]]:
    """Return the warnings of active sets against the figures: (steps, sentence)."""
    return by_reason(
        experiment, lambda step: map(sentence, step.storage.active.warnings if step.storage.active else ())
    )


def _in_words(runs: str, hook: HookResult) -> Note:
    after = f" ({format.seconds(hook.seconds)})"
    if hook.ask:
        return Note(runs, device_words.operator_question(question=hook.ask, answer=hook.answer, after=after))
    return Note(runs, f"{' '.join(hook.command or ())}{after}", output=hook.output)


def _is_worth_showing(active_set: ActiveSet) -> bool:
    return active_set.counted_bytes is not None or (
        active_set.at_most_bytes is not None and bool(active_set.dram_bytes or active_set.flash_bytes)
    )


def _active_size(active_set: ActiveSet) -> str:
    if active_set.counted_bytes is None:
        return f"at most {format.size(active_set.at_most_bytes)}"
    return format.size(active_set.counted_bytes)


def _device(manifest: Manifest) -> str:
    device = data_device_label(manifest)
    return f"{device.name} ({EMULATED})" if device.emulated else device.name


def array_section(experiment: ExperimentSummary) -> Section:
    """Return the section on the storage itself: description, flash, active set, probes and preparation."""
    prepared = preparations(experiment)
    blocks = [
        *table_blocks(described_arrays(experiment), "The array of every variant"),
        *table_blocks(flash(experiment), "Flash cache or tier, by step", "Use of flash"),
        *_active_blocks(experiment),
        *table_blocks(
            reads_against_probe(experiment),
            "The database’s reads next to those of the raw storage",
            "The database’s share",
        ),
        *table_blocks(drift_of_runs(experiment), "Probes of the raw storage, before and after", "Drift"),
        *([Title("Preparation"), Notes(prepared)] if prepared else []),
    ]
    return Section("array", "The storage itself", blocks, "array, flash, active set, probes")


def _active_blocks(experiment: ExperimentSummary) -> list[Block]:
    if (table := active(experiment)) is None:
        return []
    return [
        Title("Active data"),
        *active_figures(experiment),
        Shown(table, "Active set next to DRAM and flash, by step"),
        *(Words(f"{steps}: {text}", "footnote bad") for steps, text in warnings(experiment)),
    ]

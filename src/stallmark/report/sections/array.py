"""The tables of the storage itself: its description, preparation, flash and active set."""

from collections.abc import Sequence
from itertools import groupby

from stallmark import format
from stallmark.analysis.compare.sides import variant
from stallmark.analysis.experiment import ExperimentSummary
from stallmark.analysis.read.active_set_summary import ActiveSet
from stallmark.record.devices import data_device_label
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.storage import HookResult
from stallmark.report.document import Block, Note, Notes, Section, Shown, Title, Words, shown
from stallmark.report.labels import step_labels, step_rows
from stallmark.report.sections.active_set import active_figures
from stallmark.report.sections.environment import flatten
from stallmark.report.sections.probes import against_probe, drift_of_runs
from stallmark.report.table import Cell, Table, number, word
from stallmark.report.text import device as device_words
from stallmark.report.text import sentence
from stallmark.report.text.device import EMULATED
from stallmark.report.text.probe import preconditioned


def described(experiment: ExperimentSummary) -> Table | None:
    """Return the described array of every variant, side by side; None where no scenario describes one."""
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
            for key in dict.fromkeys(key for one in facts.values() for key in one)
        ),
    ]
    note = device_words.DESCRIBED_ARRAY
    return Table(["", *variants], rows, frozenset(range(len(variants) + 1)), [note])


def done(experiment: ExperimentSummary) -> list[Note]:
    """Return the hooks and preconditioning before runs.

    An action before several repeats of a variant is listed once, though each of their records holds it.
    """
    found = []
    for _, alike in groupby(experiment.runs, lambda run: (variant(run), run.manifest.hook, run.manifest.precondition)):
        first, *more = alike
        title = f"{first.title} to {more[-1].title.removeprefix(variant(first)).strip(', ')}" if more else first.title
        if hook := first.manifest.hook:
            found.append(_in_words(title, hook))
        if conditioned := first.manifest.precondition:
            found.append(Note(title, preconditioned(conditioned)))
    return found


def flash(experiment: ExperimentSummary) -> Table | None:
    """Return the use of flash in every step; None where no device's flash was counted."""
    return step_rows(experiment, lambda step: filter(None, [step.storage.flash])).table_if_any(
        word("flash", lambda use: f"{format.size(use.size_bytes)} {use.kind}"),
        number("reads it answered", lambda use: use.share, format.share),
        number("ms of these", lambda use: use.read_ms),
        number("ms of the rest", lambda use: use.spindle_read_ms),
        number("evicted/s", lambda use: use.evictions_per_s),
        number("moved up", lambda use: use.up_bytes, format.size),
        number("moved down", lambda use: use.down_bytes, format.size),
        number("filled", lambda use: None if use.used_bytes is None else use.used_bytes / use.size_bytes, format.share),
        notes=[device_words.FLASH],
    )


def active(experiment: ExperimentSummary) -> Table | None:
    """Return the active set of every step and the sizes that could hold it; None where neither is known."""
    rows = step_rows(experiment, lambda step: filter(_worth, filter(None, [step.storage.active])))
    extents = sorted({active.extent_bytes for active in rows.items if active.extent_bytes})
    how = f" in extents of {' or '.join(map(format.size, extents))}" if extents else ""
    return rows.table_if_any(
        number("active", _counted),
        number("in a minute", lambda active: active.minute_bytes, format.size),
        number("database", lambda active: active.database_bytes, format.size),
        number(
            "array’s DRAM", lambda active: Cell(format.size(active.dram_bytes), "apart" if active.fits_dram else "")
        ),
        number("flash", lambda active: Cell(format.size(active.flash_bytes), "apart" if active.fits_flash else "")),
        notes=[device_words.active(how)],
    )


def warnings(experiment: ExperimentSummary) -> list[tuple[str, str]]:
    """Return the warnings of active sets against the figures: (steps, sentence)."""
    labels = step_labels(experiment)
    found: dict[str, list[str]] = {}
    for step in experiment.steps:
        for warning in step.storage.active.warnings if step.storage.active else ():
            found.setdefault(sentence(warning), []).append(labels[step.key])
    return [(", ".join(names), text) for text, names in found.items()]


def _in_words(runs: str, hook: HookResult) -> Note:
    after = f" ({format.seconds(hook.seconds)})"
    if hook.ask:
        return Note(runs, device_words.asked(hook.ask, hook.answer, after))
    return Note(runs, f"{' '.join(hook.command or ())}{after}", output=hook.output)


def _worth(one: ActiveSet) -> bool:
    return one.counted_bytes is not None or (one.at_most_bytes is not None and bool(one.dram_bytes or one.flash_bytes))


def _counted(one: ActiveSet) -> str:
    if one.counted_bytes is None:
        return f"at most {format.size(one.at_most_bytes)}"
    return format.size(one.counted_bytes)


def _device(manifest: Manifest) -> str:
    device = data_device_label(manifest)
    return f"{device.name} ({EMULATED})" if device.emulated else device.name


def section(experiment: ExperimentSummary) -> Section:
    """Return what is known of the storage itself, and what was done to it."""
    blocks = [
        *shown(described(experiment), "The array of every variant"),
        *shown(flash(experiment), "Flash cache or tier, by step", "What its flash did"),
        *_active_blocks(experiment),
        *shown(
            against_probe(experiment),
            "The database’s reads beside those of the raw storage",
            "What the database had of it",
        ),
        *shown(drift_of_runs(experiment), "Probes of the raw storage, before and after", "Did it stay the same?"),
        *_done_blocks(experiment),
    ]
    return Section("array", "The storage itself", blocks, "array, flash, active set, probes")


def _done_blocks(experiment: ExperimentSummary) -> list[Block]:
    notes = done(experiment)
    return [Title("What was done to it"), Notes(notes)] if notes else []


def _active_blocks(experiment: ExperimentSummary) -> list[Block]:
    if (table := active(experiment)) is None:
        return []
    return [
        Title("How much of the data was active"),
        *active_figures(experiment),
        Shown(table, "Active set beside DRAM and flash, by step"),
        *(Words(f"{steps}: {text}", "footnote bad") for steps, text in warnings(experiment)),
    ]

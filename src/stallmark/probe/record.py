"""The record of a probe: a folder as of any run, of kind "probe", whose tables grow step by step."""

from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Final, Literal

import pyarrow as pa

from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import ManifestPart
from stallmark.record.manifest.storage import Pattern, ProbeResult, ProbeStep
from stallmark.record.reader import Record
from stallmark.record.schema import AddedTable, column
from stallmark.record.writer import RecordWriter


class AskedStep(ManifestPart):
    pattern: str
    outstanding: int


class ProbePlan(ManifestPart):
    """The planned steps of a probe, each of `seconds`."""

    seconds: float
    steps: tuple[AskedStep, ...]


class ProbeManifest(Manifest):
    """The manifest of a probe, which has neither a database nor a load."""

    kind: Literal["probe"] = "probe"  # type: ignore[assignment]
    probe: ProbeResult
    """The tool, device and file of a probe; its steps are in the tables."""
    probe_plan: ProbePlan | None = None


_PATTERN = column("pattern", pa.string(), 'as the scenario names it: "8k-random-read"')
_OUTSTANDING = column("outstanding", pa.int32(), "under way at once", "I/Os")
TABLES: Final = {
    "probe_steps": AddedTable(
        "A probe of raw storage: a row for each pattern and number of I/Os under way.",
        pa.schema(
            [
                _PATTERN,
                column("operation", pa.string(), "read or write"),
                column("order", pa.string(), "random or sequential"),
                column("block_bytes", pa.int64(), "size of an I/O"),
                _OUTSTANDING,
                column("seconds", pa.float64(), "length of the step", "s"),
                column("ios", pa.int64(), "ended in it", "I/Os"),
                column("bytes", pa.int64(), "read or written in it", "bytes"),
                column("mean_ms", pa.float64(), "from issuing an I/O to its end, mean"),
                column("device_bytes", pa.int64(), "counted by the block device meanwhile, in this direction", "bytes"),
            ]
        ),
        added_later=frozenset(("device_bytes",)),
        # A probe refuses a step in which no I/O ended.
        positive=frozenset(("outstanding", "seconds", "ios", "mean_ms")),
    ),
    "probe_histogram": AddedTable(
        "Its I/Os by how long they took.",
        pa.schema(
            [
                _PATTERN,
                _OUTSTANDING,
                column("ms", pa.float64(), "time of an I/O, two significant digits", "ms"),
                column("ios", pa.int64(), "that took this long", "I/Os"),
            ]
        ),
    ),
    "probe_windows": AddedTable(
        "Its rate over time.",
        pa.schema(
            [
                _PATTERN,
                _OUTSTANDING,
                column("t", pa.float64(), "end of the window, since the step began", "s"),
                column("iops", pa.float64(), "ended in the window", "I/Os per second"),
            ]
        ),
    ),
}


def begin_record(folder: Path, manifest: ProbeManifest) -> RecordWriter:
    return RecordWriter(folder, manifest, {name: table.columns for name, table in TABLES.items()})


def append_step(writer: RecordWriter, step: ProbeStep) -> None:
    where = {"pattern": step.pattern.name, "outstanding": step.outstanding}
    figures = {name: getattr(step, name) for name in ("seconds", "ios", "bytes", "mean_ms", "device_bytes")}
    pattern = {name: getattr(step.pattern, name) for name in ("operation", "order", "block_bytes")}
    writer.append("probe_steps", [where | pattern | figures])
    writer.append("probe_histogram", [where | {"ms": ms, "ios": ios} for ms, ios in step.histogram])
    writer.append("probe_windows", [where | {"t": t, "iops": iops} for t, iops in step.windows])


def read_probe(record: Record) -> ProbeResult:
    """Return the result with the steps in the tables, as far as they were measured."""
    histograms, windows = defaultdict(list), defaultdict(list)
    for row in record.table("probe_histogram").to_pylist():
        histograms[row["pattern"], row["outstanding"]].append((row["ms"], row["ios"]))
    for row in record.table("probe_windows").to_pylist():
        windows[row["pattern"], row["outstanding"]].append((row["t"], row["iops"]))
    steps = []
    for row in record.table("probe_steps").to_pylist():
        counted = row.get("device_bytes")  # older records lack it
        key = row["pattern"], row["outstanding"]
        pattern = Pattern(row["pattern"], row["operation"], row["order"], row["block_bytes"])
        figures = (row["seconds"], row["ios"], row["bytes"], row["mean_ms"])
        steps.append(
            ProbeStep(pattern, row["outstanding"], *figures, tuple(histograms[key]), tuple(windows[key]), counted)
        )
    assert isinstance(record.manifest, ProbeManifest)
    return replace(record.manifest.probe, steps=tuple(steps))

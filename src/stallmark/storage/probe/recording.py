"""The record of a probe: a folder as of any run, of kind "probe", whose tables grow step by step."""

from dataclasses import dataclass, replace
from pathlib import Path

import stallmark
from stallmark.errors import as_reason
from stallmark.record import machine
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.scenario import Scenario, Variant
from stallmark.record.manifest.storage import AskedStep, ProbePlan
from stallmark.record.probe import Asked, ProbeResult, ProbeStep
from stallmark.record.schema import PROBE_TABLES
from stallmark.record.writer import RecordWriter
from stallmark.storage.probe.measurement import ProbedArrays, Progress, measure, result
from stallmark.storage.probe.probe_file import ProbeFile


@dataclass(frozen=True)
class ProbePlace:
    """The place of a probe: its experiment, its number in it, its scenario and its variant."""

    experiment: str
    sequence: int
    scenario: Scenario
    variant: Variant


def record_probe(
    folder: Path,
    place: ProbePlace,
    file: ProbeFile,
    steps: tuple[Asked, ...],
    seconds: float,
    started: str,
    devices: ProbedArrays | None = None,
    progress: Progress = lambda number, step: None,
) -> ProbeResult:
    """Measure the steps into a new record and return the result. However the probe ends, the record is closed."""
    empty = result(file, (), started, devices)
    asked = tuple(AskedStep(pattern=one.pattern.name, outstanding=one.outstanding) for one in steps)
    manifest = Manifest(
        kind="probe",
        stallmark=stallmark.__version__,
        started=started,
        experiment=place.experiment,
        sequence=place.sequence,
        scenario=place.scenario,
        variant=place.variant,
        probe=empty,
        probe_plan=ProbePlan(seconds=seconds, steps=asked),
        machine=machine.facts(),
    )
    writer = RecordWriter(folder, manifest, PROBE_TABLES)

    def keep(number: int, step: ProbeStep) -> None:
        append_step(writer, step)
        progress(number, step)

    reason: str | None = "Stallmark ended unexpectedly"
    try:
        found = measure(file, steps, seconds, devices, keep)
        reason = None
    except BaseException as error:
        reason = as_reason(error) or reason
        raise
    finally:
        writer.close(reason)
    return replace(empty, steps=found)


def append_step(writer: RecordWriter, step: ProbeStep) -> None:
    where = {"pattern": step.pattern.name, "outstanding": step.outstanding}
    figures = {name: getattr(step, name) for name in ("seconds", "ios", "bytes", "mean_ms", "device_bytes")}
    pattern = {name: getattr(step.pattern, name) for name in ("operation", "order", "block_bytes")}
    writer.append("probe_steps", [where | pattern | figures])
    writer.append("probe_histogram", [where | {"ms": ms, "ios": ios} for ms, ios in step.histogram])
    writer.append("probe_windows", [where | {"t": t, "iops": iops} for t, iops in step.windows])

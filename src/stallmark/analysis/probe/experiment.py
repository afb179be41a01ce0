"""The probes of an experiment, read from their records and summed up."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from stallmark.analysis.finding import Finding, caution, early_ends, info
from stallmark.analysis.probe.saturation import (
    ProbeKind,
    Saturation,
    is_sustained,
    overall_finding,
    page_cache_cautions,
    saturations,
)
from stallmark.errors import StallmarkError
from stallmark.record.manifest import Manifest
from stallmark.record.manifest.storage import PERCENTILES, Pattern, ProbeResult, ProbeStep
from stallmark.record.reader import Record
from stallmark.stats.thresholds import PROBE_AT_DEVICE, PROBE_SMALL_BYTES, SAMPLES_BEYOND

_IOS_FOR_P99 = round(SAMPLES_BEYOND / (1 - PERCENTILES["p99"]))


@dataclass(frozen=True)
class ProbeRun:
    """A probe. `variant` is the scenario's name for it, or the place that was probed."""

    folder: str
    variant: str
    manifest: Manifest
    incomplete_because: str | None
    result: ProbeResult
    saturations: list[Saturation]


@dataclass(frozen=True)
class ProbeExperiment:
    """The summary of an experiment of probes, with everything that the report shows."""

    scenario: str
    title: str
    answers: str
    emulated: bool
    runs: list[ProbeRun]
    findings: list[Finding]
    cautions: list[Finding]
    comparison: None = None  # probes are made once: there is no verdict

    @property
    def patterns(self) -> list[Pattern]:
        """Return the patterns in the order in which they were measured."""
        return list(dict.fromkeys(step.pattern for run in self.runs for step in run.result.steps))


def summarise_probes(records: Sequence[Record]) -> ProbeExperiment:
    """Summarise probes. Raise StallmarkError if a record is not of a probe."""
    if others := [record for record in records if not record.is_probe]:
        raise StallmarkError(
            f"{others[0].folder} is a run on a database, and others are probes of raw storage: make a report of each "
            "by itself."
        )
    runs = _make_names_unique([_read_run(record) for record in records])
    scenario = records[0].manifest.scenario
    places = list(dict.fromkeys(run.result.place for run in runs))
    return ProbeExperiment(
        scenario=scenario.name or "probe",
        title=scenario.title or f"Raw storage of {', '.join(places)}",
        answers=scenario.answers or "What does this storage give without a database, and where does it saturate?",
        emulated=any(run.result.emulated for run in runs),
        runs=runs,
        findings=list(_findings(runs)),
        cautions=list(_cautions(runs)),
    )


def read_probe(record: Record) -> ProbeResult:
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
    assert record.manifest.probe  # every probe's record has it
    return replace(record.manifest.probe, steps=tuple(steps))


def _read_run(record: Record) -> ProbeRun:
    result = read_probe(record)
    return ProbeRun(
        record.folder.name,
        _probe_name(record.manifest, result),
        record.manifest,
        record.incomplete_because,
        result,
        saturations(result),
    )


def _probe_name(manifest: Manifest, result: ProbeResult) -> str:
    return manifest.variant.name or result.place


def _make_names_unique(runs: list[ProbeRun]) -> list[ProbeRun]:
    """Make the names of probes unique: add the time to equal names and, if that is equal too, the folder."""
    for more in (lambda run: run.result.started.replace("T", " ")[:16], lambda run: run.folder):
        taken = Counter(run.variant for run in runs)
        runs = [replace(run, variant=f"{run.variant}, {more(run)}") if taken[run.variant] > 1 else run for run in runs]
    return runs


def _findings(runs: Sequence[ProbeRun]) -> Iterator[Finding]:
    yield from _compare_with_first(runs)
    for run in runs:
        # Each of several patterns has its own section, which shows its finding.
        several = len(run.saturations) > 1
        for finding in (
            [overall_finding(run.saturations)] if several else [saturation.finding for saturation in run.saturations]
        ):
            yield info(ProbeKind.OF_PROBE, probe=run.variant, found=finding) if len(runs) > 1 else finding


def _compare_with_first(runs: Sequence[ProbeRun]) -> Iterator[Finding]:
    """Compare each probe with the first, for every random pattern, at the most outstanding I/Os that all kept up."""
    for pattern in [p for p in runs[0].result.curves() if p.random]:
        curves = [
            {step.outstanding: step for step in run.result.curves().get(pattern, []) if is_sustained(step)}
            for run in runs
        ]
        # Only a depth that every probe sustained compares like with like.
        common = set.intersection(*(set(curve) for curve in curves))
        if len(runs) < 2 or not common:
            continue
        depth = max(common)
        first = curves[0][depth]
        for run, curve in list(zip(runs, curves, strict=True))[1:]:
            if run.result.emulated != runs[0].result.emulated:
                continue  # an emulated device and a real one are not comparable
            yield info(
                ProbeKind.AGAINST_FIRST,
                pattern=pattern.title,
                outstanding=depth,
                probe=run.variant,
                first=runs[0].variant,
                iops=curve[depth].iops,
                first_iops=first.iops,
                mean_ms=curve[depth].mean_ms,
                first_ms=first.mean_ms,
            )


def _cautions(runs: Sequence[ProbeRun]) -> Iterator[Finding]:
    yield from early_ends(run.manifest for run in runs)
    # Every probe has its own name, so none was repeated.
    if 1 < len(runs) == len({_probe_name(run.manifest, run.result) for run in runs}):
        yield caution(ProbeKind.NOT_REPEATED)
    if len({run.result.emulated for run in runs}) > 1:
        yield caution(ProbeKind.EMULATED_AND_REAL)
    # An emulated array has no memory that the file could fit into.
    smallest = min((run.result.file_bytes for run in runs if not run.result.emulated), default=PROBE_SMALL_BYTES)
    if smallest < PROBE_SMALL_BYTES:
        yield caution(ProbeKind.SMALL_FILE, file_bytes=smallest)
    yield from page_cache_cautions((run.result.place, run.result.direct_io) for run in runs)
    for run in runs:
        if elsewhere := _not_at_device(run.result.steps):
            yield caution(
                ProbeKind.NOT_AT_DEVICE,
                probe=run.variant,
                device=run.result.device,
                share=min(share for _, share in elsewhere),
                steps=[f"{step.pattern.title}, {step.outstanding} outstanding" for step, _ in elsewhere],
                of=len(run.result.steps),
            )
        if run.incomplete_because:
            yield caution(ProbeKind.INCOMPLETE, probe=run.variant, said=run.incomplete_because)
        few = [step for step in run.result.steps if step.ios < _IOS_FOR_P99]
        if few:
            yield caution(ProbeKind.FEW_IOS, probe=run.variant, share=len(few) / len(run.result.steps))


def _not_at_device(steps: Sequence[ProbeStep]) -> list[tuple[ProbeStep, float]]:
    """Return the steps whose device counted too few bytes, with the share that it counted.

    Bytes are compared instead of I/Os, as a device merges consecutive I/Os.
    """
    known = [(step, step.device_bytes / step.bytes) for step in steps if step.device_bytes is not None and step.bytes]
    return [(step, share) for step, share in known if share < PROBE_AT_DEVICE]

"""The wording of the checks before two sides are compared: requirements, results, and how the sides were configured."""

from collections.abc import Mapping, Sequence
from typing import Any

from stallmark import format
from stallmark.analysis.compare.settings import DifferenceKind, IntentKind
from stallmark.analysis.compare.summary import CheckKind, ReasonKind
from stallmark.analysis.finding import Finding, Kind
from stallmark.analysis.metrics import METRICS
from stallmark.format import listed, per_transaction, percent, size, up_to
from stallmark.report.text import Format, clause, in_brackets, says, sentence, term
from stallmark.report.text.cautions import changes, during
from stallmark.report.text.device import labelled
from stallmark.stats.thresholds import AGAIN, FOREIGN_CPU, FOREIGN_IO, GROWTH, READS_AT_ONE_POOL, SAME

MOST_REASONS, MOST_NAMES, MOST_DIFFERENCES = 2, 3, 4
"""Most items that a sentence names; the table of checks names all."""


def metric_title(key: str) -> str:
    """Return the title of a metric; its key if only another version knows it."""
    return METRICS[key].title if key in METRICS else key


SENTENCES: Mapping[Kind, str] = {
    CheckKind.METRIC_MEASURED: "{metric:title} not measured in every run, or zero",
    # Why two sides must not be compared.
    ReasonKind.METRICS_DIFFER: "Different primary metrics were declared: {metrics:declared}.",
    ReasonKind.SETTINGS_DIFFER: "The runs differ in settings: {differences:differences}.",
    ReasonKind.DRIVER_BOUND: "The driver was the bottleneck in {runs:names}, so the server could have done more.",
    ReasonKind.DATA_WRONG: "The data were wrong after {runs:names}.",
    ReasonKind.CLOCK_WENT_BACK: "The clock went back before {runs:names} began.",
    ReasonKind.DATA_GREW: "The database grew by up to {share:percent} within a run, or from one run to another.",
    ReasonKind.PLANS_DIFFER: (
        "Statements of {procedures:names} had a different plan on one side: a difference in plans is not an effect of "
        "storage."
    ),
    ReasonKind.READS_DIFFER: (
        "Physical reads per transaction differ by {share:percent} ({reads_per_transaction:and}) although the buffer "
        "pool is the same: it was not full yet, or something other than storage changed."
    ),
    ReasonKind.DRIFTED: (
        "Something else changed over time: {metric:title} of {side} differed by {share:percent} when the side was run "
        "again at the end."
    ),
    ReasonKind.NOT_MEASURED: (
        "The primary metric, {metric:title}, was not measured in every run of {a} and {b}, or was zero."
    ),
    # What the sides were made with.
    IntentKind.POOL: "buffer pool {reached_bytes:size}",
    IntentKind.SETTING: "{name} {value}",
    IntentKind.DURING: "a {maintenance} during the load",
    IntentKind.DATA_DEVICE: "data on {device:labelled}{folder:in_brackets}",
    # What they differ in.
    DifferenceKind.WORKLOAD: "workload {a:setting} against {b:setting}",
    DifferenceKind.SCALE: "scale {a:setting} against {b:setting}",
    DifferenceKind.SEED: "seed {a:setting} against {b:setting}",
    DifferenceKind.MIX: "mix {a:setting} against {b:setting}",
    DifferenceKind.LOCALITY: "locality {a:setting} against {b:setting}",
    DifferenceKind.SERVER: "server {a:setting} against {b:setting}",
    DifferenceKind.SERVER_VERSION: "version of the server {a:setting} against {b:setting}",
    DifferenceKind.DESIGN: "physical design {a:setting} against {b:setting}",
    DifferenceKind.LOAD_MACHINES: "load machines {a:setting} against {b:setting}",
    DifferenceKind.CACHE_START: "cache at the start {a:setting} against {b:setting}",
    DifferenceKind.RESET: "reset {a:setting} against {b:setting}",
    DifferenceKind.OBSERVATION: "observation {a:setting} against {b:setting}",
    DifferenceKind.CPU: "CPU of the driver’s machine {a:setting} against {b:setting}",
    DifferenceKind.CORES: "cores of the driver’s machine {a:setting} against {b:setting}",
    DifferenceKind.MEMORY: "memory of the driver’s machine {a:setting} against {b:setting}",
    DifferenceKind.ARRIVALS: "arrivals {a:setting} against {b:setting}",
    DifferenceKind.RATE: "rate of arrivals {a:setting} against {b:setting}",
    DifferenceKind.THINK_TIME: "think time, ms {a:setting} against {b:setting}",
    DifferenceKind.MEASURED: "seconds measured {a:setting} against {b:setting}",
    DifferenceKind.POOL: "buffer pool {a:size} against {b:size}",
    DifferenceKind.SETTING: "setting {name} {a:setting} against {b:setting}",
}


# Checks: what each is called, what it asks, and what was found. ----------------------------------------------

CHECKS: Mapping[Kind, tuple[str, str]] = {
    CheckKind.METRIC_DECLARED: ("declared metric", "all runs declare the same primary metric"),
    CheckKind.SETTINGS: (
        "settings",
        "server, its settings, data, users and machine are the same, except for what the variants declare",
    ),
    CheckKind.RUNS: ("runs", "no run is invalid, apart from foreign I/O or CPU"),
    CheckKind.DRIVER: ("driver", "the driver was not the bottleneck"),
    CheckKind.CONSISTENCY: ("consistency", "the data were consistent after every run"),
    CheckKind.FOREIGN_IO: ("foreign I/O", f"other programs caused at most {percent(FOREIGN_IO)} of the I/O"),
    CheckKind.FOREIGN_CPU: ("foreign CPU", f"other programs kept at most {percent(FOREIGN_CPU)} of the CPUs busy"),
    CheckKind.CLOCK: ("clock", "by the clock, runs began in the order of their records"),
    CheckKind.GROWTH: ("data", f"the database grew by no more than {percent(GROWTH)}, within runs and from run to run"),
    CheckKind.READS: (
        "reads per transaction",
        f"with the same buffer pool they differ by at most {percent(READS_AT_ONE_POOL)}, or by no more than the "
        "run-to-run variation",
    ),
    CheckKind.PLANS: ("plans", "every statement has the same plan on both sides"),
    CheckKind.STEADINESS: (
        "steadiness",
        "the runs were steady while they were measured, or no more were unsteady than chance explains",
    ),
    CheckKind.DEVICES: ("devices", "data and log of all runs are each on emulated devices, or each on real ones"),
    CheckKind.STORAGE: (
        "raw storage",
        "raw storage performs the same before and after every run, and whenever a variant is repeated",
    ),
    CheckKind.AGAIN: ("A′ = A", "the first side, run again at the end, gives the same result"),
    CheckKind.METRIC_MEASURED: ("primary metric", "every run has a value above zero"),
}


@says(CheckKind.METRIC_DECLARED)
def _(metrics: Mapping[str, list[str]]) -> str:
    keys = list(dict.fromkeys(key for keys in metrics.values() for key in keys))
    return metric_title(keys[0]) if len(keys) == 1 else _metrics_of_sides(metrics)


@says(CheckKind.SETTINGS)
def _(differences: list[Finding]) -> str:
    return _differences(differences, MOST_DIFFERENCES) if differences else "the same"


@says(CheckKind.RUNS)
def _(invalid: int, runs: int, reasons: list[Mapping[str, Any]]) -> str:
    if not invalid:
        return f"none of {runs} runs"
    return f"{invalid} of {runs} runs: " + "; ".join(_reason(reason, None) for reason in reasons)


@says(CheckKind.DRIVER)
def _(bound: list[str], runs: int) -> str:
    return f"driver-bound in {len(bound)} of {runs} runs" if bound else "driver-bound in no run"


@says(CheckKind.CONSISTENCY)
def _(wrong: list[str], checked: int, runs: int) -> str:
    if wrong:
        return f"wrong after {len(wrong)} of {checked} runs"
    if not checked:
        return "no condition was checked"
    return f"consistent after all {checked} {'runs' if checked == runs else f'checked runs of {runs}'}"


@says(CheckKind.FOREIGN_IO)
@says(CheckKind.FOREIGN_CPU)
def _(share: float | None, unknown: int, runs: int) -> str:
    if share is None:
        return "not known"
    return f"{up_to(share)}{f', unknown for {unknown} of {runs} runs' if unknown else ''}"


@says(CheckKind.CLOCK)
def _(runs: list[str]) -> str:
    return f"{listed(runs)} began before the previous run" if runs else "in order"


@says(CheckKind.GROWTH)
def _(within_share: float | None, between_share: float | None) -> str:
    if within_share is None and between_share is None:
        return "size not known"
    shares = {"within a run": within_share, "between runs": between_share}
    return ", ".join(f"{where} {'not known' if share is None else up_to(share)}" for where, share in shares.items())


@says(CheckKind.READS)
def _(reads_per_transaction: list[float] | None, share: float | None, p: float | None, unknown: int) -> str:
    if reads_per_transaction is None or share is None:
        return "not known"
    scatter = "" if p is None else f", within run-to-run variation (p {p:.2f})"
    unknown_runs = f", unknown for {unknown} run{'s' * (unknown != 1)}" if unknown else ""
    return f"{_join_per_transaction(reads_per_transaction)}, {percent(share)} apart{scatter}{unknown_runs}"


@says(CheckKind.PLANS)
def _(procedures: list[str]) -> str:
    return f"changed in {_names(procedures)}" if procedures else "the same"


@says(CheckKind.STEADINESS)
def _(
    runs: int, steady: int, too_short: int, unsteady: list[Mapping[str, Any]], tolerated: list[Mapping[str, Any]]
) -> str:
    if unsteady:
        reasons = "; ".join(f"{listed(reason['runs'])} {term(reason['because'])}" for reason in unsteady)
        return f"{sum(len(reason['runs']) for reason in unsteady)} of {runs} runs not steady: {reasons}"
    parts = [f"all {steady} runs" if steady == runs else f"{steady} of {runs} runs"] if steady else []
    if too_short:
        parts.append(f"{too_short} of {runs} too short to tell")
    for reason in tolerated:
        explanation = (
            "which chance explains among that many runs" if reason["by_chance"] else "but too little to matter"
        )
        parts.append(f"{listed(reason['runs'])} {term(reason['because'])}, {explanation}")
    return "; ".join(parts)


@says(CheckKind.DEVICES)
def _(data_emulated: int, log_emulated: int, runs: int) -> str:
    if not data_emulated and not log_emulated:
        return "all on real devices"
    return f"{data_emulated} of {runs} runs with data on an emulated device, {log_emulated} with the log on one"


@says(CheckKind.STORAGE)
def _(compared: int, mixed_up: list[Finding], others: list[Mapping[str, Any]]) -> str:
    parts = [*map(clause, mixed_up), *(f"{during(other['between'])}: {term(other['verdict'])}" for other in others)]
    alike = f"the same in {compared} comparison{'s' * (compared != 1)} of probes"
    return "; ".join(parts) or (alike if compared else "probed once, with nothing to compare")


@says(CheckKind.AGAIN)
def _(side: str, metric: str, drifts: list[Mapping[str, Any]]) -> str:
    if not drifts:
        return f"{metric_title(metric)} of {side} was not measured both times"
    return "; ".join(
        f"{metric_title(drift['metric'])} {drift['share'] * 100:.1f} % apart, "
        + (
            f"from one run; {percent(SAME)} allowed"
            if drift["p"] is None
            else f"p {drift['p']:.2f}; {percent(AGAIN)} allowed, up to {percent(SAME)} within run-to-run variation"
        )
        for drift in drifts
    )


# Why two sides must not be compared. -------------------------------------------------------------------------


@says(ReasonKind.RUNS_INVALID)
def _(reasons: list[Mapping[str, Any]]) -> str:
    more = f"; {len(reasons) - MOST_REASONS} more" if len(reasons) > MOST_REASONS else ""
    texts = [_reason(reason, MOST_NAMES) for reason in reasons[:MOST_REASONS]]
    return f"Invalid runs: {'; '.join(texts)}{more}."


@says(ReasonKind.FOREIGN_IO)
def _(share: float, runs: list[str]) -> str:
    most = "up to " * (len(runs) > 1)
    return f"Other programs used the storage: they caused {most}{percent(share)} of its I/O in {_names(runs)}."


@says(ReasonKind.FOREIGN_CPU)
def _(share: float, runs: list[str]) -> str:
    most = "up to " * (len(runs) > 1)
    return (
        f"Other programs kept CPUs of the server’s machine busy: {most}{percent(share)} of them in {_names(runs)}, "
        "while the server waited for CPUs, or almost none was free."
    )


@says(ReasonKind.NOT_STEADY)
def _(reasons: list[Mapping[str, Any]]) -> str:
    texts = "; ".join(f"{_names(reason['runs'])} {term(reason['because'])}" for reason in reasons)
    return f"Runs were not steady: {texts}."


@says(ReasonKind.DEVICES_DIFFER)
def _(role: str) -> str:
    if role == "wal":
        return "The log of one side was on an emulated device and that of the other on a real one."
    return "One side ran on an emulated device and the other on a real one."


@says(ReasonKind.PROBE_OF_OTHER_DEVICE)
def _(run: str, run_emulated: bool) -> str:
    ran, other = ("an emulated", "a real") if run_emulated else ("a real", "an emulated")
    return f"The probe of {run} was made on {other} device and the run on {ran} one: the two cannot be compared."


@says(ReasonKind.STORAGE_CHANGED)
def _(changes: list[Mapping[str, Any]]) -> str:
    texts = "; ".join(f"{during(change['between'])}: {clause(change['how'])}" for change in changes[:MOST_REASONS])
    return f"The storage itself changed {texts}."


# What the sides were made with. ------------------------------------------------------------------------------


@says(IntentKind.ROW_VERSIONING)
def _(on: bool) -> str:
    return f"{'row versions' if on else 'locks'} for READ COMMITTED"


_LIMITS = {"iops_per_volume": "{:,} I/Os per second and volume", "cpu_percent": "{} % of the CPUs"}


@says(IntentKind.RESOURCE_POOL)
def _(limits: Mapping[str, int]) -> str:
    texts = [_LIMITS.get(name, "{} % of the memory grants").format(value) for name, value in limits.items()]
    return f"users limited to {listed(texts)}"


@says(IntentKind.ARRAY)
def _(part: str, value: str | int) -> str:
    return f"array: {part.removesuffix('_bytes').replace('_', ' ')} {size(value) if isinstance(value, int) else value}"


@says(IntentKind.LOG_DEVICE)
def _(device: str | None, emulated: Mapping[str, Any] | None, folder: str | None, with_data: bool) -> str:
    if with_data:
        return f"log on the same device{in_brackets(folder)}"
    if emulated is None:
        return f"log on {device or 'unknown'}{in_brackets(folder)}"
    rpm = emulated["rpm"]
    time = f"{rpm:,.0f} rpm" if rpm else f"{format.number(emulated['write_ms'] or 0)} ms"
    disks = "1 emulated spindle" if emulated["spindles"] == 1 else f"{emulated['spindles']} emulated spindles"
    return f"log on {disks}, {time}"


@says(DifferenceKind.WORKLOAD_VERSION)
def _(workload: str, a: int, b: int) -> str:
    return f"built by data version {a} and {b}, with {changes(workload, (a, b))}"


def _setting(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {inner}" for key, inner in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value}"


def _metrics_of_sides(metrics: Mapping[str, list[str]]) -> str:
    return listed([f"{metric_title(key)} of {side}" for side, keys in metrics.items() for key in keys])


def _differences(differences: Sequence[Finding], most: int) -> str:
    more = f" and {len(differences) - most} more" if len(differences) > most else ""
    return listed([sentence(difference) for difference in differences[:most]]) + more


def _reason(run_reason: Mapping[str, Any], most: int | None) -> str:
    because = run_reason["because"]
    return f"{clause(because)} ({_names(run_reason['runs'], most)})"


def _names(runs: Sequence[str], most: int | None = MOST_NAMES) -> str:
    """Return names, as of runs; beyond `most`, how many more."""
    if most is None or len(runs) <= most:
        return listed(runs)
    return listed([*runs[:most], f"{len(runs) - most} more"])


def _join_per_transaction(values: Sequence[float]) -> str:
    return " and ".join(map(per_transaction, values))


FORMATS: Mapping[str, Format] = {
    "and": _join_per_transaction,
    "declared": _metrics_of_sides,
    "differences": lambda differences: _differences(differences, MOST_DIFFERENCES - 1),
    "labelled": labelled,
    "names": _names,
    "setting": _setting,
    "title": metric_title,
}

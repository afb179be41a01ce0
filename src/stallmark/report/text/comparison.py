"""The wording of comparisons, and how their figures are written, alike in the terminal, in Markdown and in HTML."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stallmark import format
from stallmark.analysis.compare.metrics import METRICS, SHARE
from stallmark.analysis.compare.settings import DifferenceKind, IntentKind
from stallmark.analysis.compare.sides import Unpaired
from stallmark.analysis.compare.summary import (
    CheckKind,
    ComparisonSummary,
    PairComparison,
    PairKind,
    Ratio,
    ReasonKind,
    Verdict,
)
from stallmark.analysis.finding import Finding, Kind
from stallmark.format import listed, per_transaction, percent
from stallmark.report.text import clause, says, sentence
from stallmark.report.text.cause import because_of
from stallmark.report.text.cautions import during
from stallmark.stats.thresholds import AGAIN, CONFIDENCE, FOREIGN_IO, GROWTH, POWER, READS_AT_ONE_POOL, REPLICATES, SAME

METHODS = (
    "Throughput counts committed transactions per second of the measured interval (of the primary transaction where "
    "the workload has one). Latency is from scheduled to ended, retries included. Read and write time, IOPS and "
    "bandwidth are of data files as the server counts them, times volume-weighted (stall ÷ I/Os); MB are 10⁶ bytes. "
    "CPU is of the server’s machine."
)
MOST_REASONS, MOST_NAMES, MOST_DIFFERENCES = 2, 3, 4
"""Named in a sentence; the table of checks names all."""

TITLES = {one.key: one.title for one in METRICS}


# How figures are written. ------------------------------------------------------------------------------------


def amount(share: float) -> str:
    """Return a difference in percent without its sign: two significant digits, whole percents from 10 on."""
    value = abs(share) * 100
    if value >= 9.95:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 0.095 or value == 0 else f"{value:.2g}"


def signed(share: float) -> str:
    """Return the same with its sign, "+4.3", "−1.2"; what is written as zero has none."""
    text = amount(share)
    return text if not float(text.replace(",", "")) else f"{'+' if share > 0 else '−'}{text}"


def interval(low: float | None, high: float | None) -> str:
    """Return the interval of a ratio, "+12 to +24 %"."""
    return "" if low is None or high is None else f"{signed(low - 1)} to {signed(high - 1)} %"


def change(found: Ratio) -> str:
    """Return "+18 %"; a dash where a side has no such value, or is zero."""
    return format.NONE if found.ratio is None else f"{signed(found.ratio - 1)} %"


def reach(found: Ratio) -> str:
    return interval(found.low, found.high) or format.NONE


def p_value(value: float | None) -> str:
    if value is None:
        return format.NONE
    return "<0.001" if value < 0.001 else f"{value:.3f}" if value < 0.1 else f"{value:.2f}"


def value(found: Ratio, of: float | None) -> str:
    """Return the value of side A or B."""
    return format.share(of) if found.unit == SHARE else format.number(of)


def named(found: Ratio) -> str:
    """Return the metric with its unit; shares carry theirs with the figure."""
    return found.name if found.unit == SHARE else f"{found.name}, {found.unit}"


def adjustment(pair: PairComparison) -> str:
    """Return what stands behind the p-values of the table."""
    primary, others = pair.primary, [one.family for one in pair.others if one.p is not None]
    if primary.p is None and min(primary.runs_a, primary.runs_b) > 1:
        return f"No p-values: {primary.name} was not measured in every run, or it was zero."
    if primary.p is None:
        return f"No p-values with fewer than 2 runs of each side (here {primary.runs_a} and {primary.runs_b})."
    own = f"p of {primary.name}: two-sided" + (f", by Holm among {primary.family} pairs" if primary.family > 1 else "")
    return (
        f"{own}; p of the {max(others, default=0)} others: by Holm among them. Intervals are of {percent(CONFIDENCE)} "
        "and of each figure by itself."
    )


def headline(found: ComparisonSummary) -> str:
    """Return the verdict in one sentence; of several pairs how many came out how."""
    if len(found.pairs) == 1:
        return sentence(found.pairs[0].finding)
    counted = dict.fromkeys(pair.verdict for pair in found.pairs)
    words = ", ".join(f"{sum(p.verdict == word for p in found.pairs)} {word}" for word in counted)
    return f"{len(found.pairs)} pairs against {found.baseline}: {words}."


# Verdicts. ---------------------------------------------------------------------------------------------------


@says(PairKind.DIFFERENCE)
def _(
    a: str,
    b: str,
    step: list[Any] | None,
    metric: str,
    ratio: float,
    low: float,
    high: float,
    verdict: Verdict,
    because: Finding | None,
) -> str:
    up = ratio > 1
    # Of a fall the ends change places: 0.76 to 0.88 is 12 to 24 % less.
    ends = sorted((low - 1, high - 1) if up else (1 - high, 1 - low))
    by, reach = amount(ratio - 1), f"{amount(ends[0])} to {amount(ends[1])}"
    if metric == "tps":
        verb = "beats" if verdict == Verdict.BETTER else "falls behind"
        said = f"{b} {verb} {a} by {by} % ({reach})"
    else:
        said = f"{b} has a {TITLES[metric]} {by} % {'higher' if up else 'lower'} than {a} ({reach})"
    why = because_of(because) if because else None
    return f"{_of_step(step)}{said}, {why}." if why else f"{_of_step(step)}{said}."


@says(PairKind.NO_DIFFERENCE)
def _(
    a: str,
    b: str,
    step: list[Any] | None,
    metric: str,
    ratio: float,
    low: float,
    high: float,
    detectable_share: float | None,
    by_chance_among: int | None,
) -> str:
    """Say also what these runs could have shown: without it, "no difference" says nothing."""
    text = (
        f"{_of_step(step)}No difference shown between {a} and {b}: {TITLES[metric]} {signed(ratio - 1)} % "
        f"({interval(low, high)})"
    )
    if by_chance_among:
        text += f", which one in {by_chance_among} comparisons may show by chance"
    if detectable_share is not None:
        text += f"; these runs could have shown {amount(detectable_share)} % or more ({percent(POWER)} power)"
    return f"{text}."


@says(PairKind.INDICATIVE)
def _(
    a: str,
    b: str,
    step: list[Any] | None,
    metric: str,
    ratio: float | None,
    low: float | None,
    high: float | None,
    runs: int,
    interval_within_run: bool,
) -> str:
    if ratio is None:
        return f"{_of_step(step)}Indicative only: {TITLES[metric]} of {a} and {b} is not known."
    text = (
        f"{_of_step(step)}Indicative only, of {'one run' if runs == 1 else f'{runs} runs'}: {TITLES[metric]} of {b} "
        f"was {signed(ratio - 1)} % against {a}"
    )
    if reach := interval(low, high):
        text += f" ({reach}{' by the scatter of seconds, which is not that of runs' if interval_within_run else ''})"
    return f"{text}; a verdict needs {REPLICATES} runs of each."


@says(PairKind.NOT_COMPARABLE)
def _(a: str, b: str, step: list[Any] | None, reasons: list[Finding]) -> str:
    more = f" ({len(reasons) - MOST_REASONS} more)" if len(reasons) > MOST_REASONS else ""
    said = "; ".join(map(clause, reasons[:MOST_REASONS]))
    return f"{_of_step(step)}{a} and {b} are not comparable: {said}{more}."


def _of_step(step: Sequence[Any] | None) -> str:
    """Return "50 users: " where the pair is one of several steps."""
    return f"{_step(*step)}: " if step else ""


def _step(name: str, users: int) -> str:
    """Return "50 users", "50 users (2)", "steady with 30 users"."""
    of = format.users(users)
    if name in ("", f"{users} users"):
        return of
    return name if name.startswith(of) else f"{name} with {of}"


_UNPAIRED = {
    Unpaired.BLOCKS: "each side ran by itself, so no run has a partner",
    Unpaired.FEW_REPEATS: "too few repeats hold a run of both",
    Unpaired.EXPERIMENTS: "the sides are different experiments, so no run has a partner",
}


@says(PairKind.METHOD)
def _(paired: bool, runs: list[int], unpaired: Unpaired | None, left_out: int, df: float | None) -> str:
    if unpaired:
        how = f"not paired, {runs[0]} and {runs[1]} runs: {_UNPAIRED[unpaired]}"
    else:
        without = f"; {left_out} without a partner left out" if left_out else ""
        how = f"paired by repeat, {runs[0]} pair{'s' * (runs[0] != 1)} of runs{without}"
    said = f"Ratios of geometric means over runs, {how}"
    if df is None:
        return f"{said}; no interval with fewer than two runs of each."
    test = "paired t" if paired else "Welch’s t"
    return f"{said}; {percent(CONFIDENCE)} intervals by {test} of ln ratios, {df:.3g} degrees of freedom."


# What to be careful about. -----------------------------------------------------------------------------------


@says(PairKind.CAME_BACK)
def _(side: str, other: str) -> str:
    return (
        f"Order confounded: {side} ran before and after {other}, so whatever changed for that time alone counts as a "
        "difference."
    )


@says(PairKind.ONE_SIDE_FIRST)
def _(a: str, b: str) -> str:
    return (
        "Order confounded: all runs of one side came before all of the other, so whatever changed with time counts as "
        f"a difference. Alternate them (order: abba), or run {a} again at the end."
    )


@says(PairKind.SEVERAL_PAIRS)
def _(pairs: int) -> str:
    return f"{pairs} pairs were compared at once: p-values are Holm’s among them, intervals each by itself."


@says(PairKind.ONLY_ONE_SIDE)
def _(side: str, steps: list[list[Any]]) -> str:
    return f"Only {side} ran {listed([_step(*step) for step in steps])}, so that is not compared."


@says(PairKind.FLASH_WARMING)
def _(sides: list[str]) -> str:
    return f"Flash was still warming up in {listed(sides)}: later it would have given more."


@says(PairKind.CHECKS_UNKNOWN)
def _(checks: list[Kind]) -> str:
    return f"Not known of these runs: {listed([CHECKS[kind][0] for kind in checks])}."


@says(PairKind.READS_WITHIN_SCATTER)
def _(reads_per_transaction: list[float], share: float, p: float) -> str:
    return (
        f"Reads per transaction differ by {percent(share)} ({_and(reads_per_transaction)}), within the scatter of runs "
        f"(p {p:.2f})."
    )


@says(PairKind.INCOMPLETE)
def _(run: str, because: str | None) -> str:
    return f"{run} is left out: {because.removesuffix('.') if because else 'nothing was measured'}."


@says(PairKind.NO_COMMON_STEP)
def _(a: str, b: str) -> str:
    return f"{b} is not compared with {a}: they have no step in common."


@says(PairKind.PLAN_LEFT_OUT)
def _(of: int, steps: bool, left_out: Mapping[str, int]) -> str:
    what = "steps" if steps else f"run{'s' * (of != 1)}"
    why = {"driver_bound": "with the driver as the bottleneck"}
    counted = [f"{count} {why.get(reason, reason)}" for reason, count in left_out.items()]
    return f"Left out of {of} {what}: {listed(counted)}."


# Checks: what each is called, what it asks, and what was found. ----------------------------------------------

CHECKS: Mapping[Kind, tuple[str, str]] = {
    CheckKind.METRIC_DECLARED: ("declared metric", "all runs declare the same primary metric"),
    CheckKind.SETTINGS: (
        "settings",
        "server, its settings, data, users and machine are the same but for what the variants declare",
    ),
    CheckKind.RUNS: ("runs", "no run has a reason not to be compared, besides foreign I/O"),
    CheckKind.DRIVER: ("driver", "the driver was not the bottleneck"),
    CheckKind.CONSISTENCY: ("consistency", "the data were right after every run"),
    CheckKind.FOREIGN_IO: ("foreign I/O", f"other programs caused at most {percent(FOREIGN_IO)} of the I/O"),
    CheckKind.CLOCK: ("clock", "runs began in the order in which they were made"),
    CheckKind.GROWTH: ("data", f"the database grew by no more than {percent(GROWTH)}, within runs and from run to run"),
    CheckKind.READS: (
        "reads per transaction",
        f"at the same pool they differ by no more than {percent(READS_AT_ONE_POOL)}, or than runs scatter",
    ),
    CheckKind.STEADINESS: ("steadiness", "the runs were steady while they were measured, but for what chance explains"),
    CheckKind.DEVICES: ("devices", "data and log of all runs are each on emulated devices, or each on real ones"),
    CheckKind.STORAGE: (
        "raw storage",
        "the storage itself does the same before and after every run, and whenever a variant comes again",
    ),
    CheckKind.AGAIN: ("A′ = A", "the first side, run again at the end, does the same"),
    CheckKind.METRIC_MEASURED: ("primary metric", "every run has a value of it above zero"),
}


@says(CheckKind.METRIC_DECLARED)
def _(metrics: Mapping[str, list[str]]) -> str:
    keys = list(dict.fromkeys(key for keys in metrics.values() for key in keys))
    return TITLES.get(keys[0], keys[0]) if len(keys) == 1 else _declared(metrics)


@says(CheckKind.SETTINGS)
def _(differences: list[Finding]) -> str:
    return _differences(differences, MOST_DIFFERENCES) if differences else "the same"


@says(CheckKind.RUNS)
def _(invalid: int, runs: int, reasons: list[Mapping[str, Any]]) -> str:
    if not invalid:
        return f"{runs} runs, none has"
    return f"{invalid} of {runs} have: " + "; ".join(_reason(one, None) for one in reasons)


@says(CheckKind.DRIVER)
def _(bound: list[str], runs: int) -> str:
    return f"it was in {len(bound)} of {runs} runs" if bound else "it was in no run"


@says(CheckKind.CONSISTENCY)
def _(wrong: list[str], checked: int, runs: int) -> str:
    if wrong:
        return f"wrong after {len(wrong)} of {checked} runs"
    return f"right after the {checked} of {runs} runs that were checked" if checked else "no condition was checked"


@says(CheckKind.FOREIGN_IO)
def _(share: float | None) -> str:
    return "not known" if share is None else f"{percent(share)} at most"


@says(CheckKind.CLOCK)
def _(runs: list[str]) -> str:
    return f"{listed(runs)} began before the run ahead of it" if runs else "in order"


@says(CheckKind.GROWTH)
def _(within_share: float | None, between_share: float | None) -> str:
    if within_share is None and between_share is None:
        return "size not known"
    return f"{percent(within_share or 0.0)} within a run, {percent(between_share or 0.0)} between runs at most"


@says(CheckKind.READS)
def _(reads_per_transaction: list[float] | None, share: float | None, p: float | None) -> str:
    if reads_per_transaction is None or share is None:
        return "not known"
    scatter = "" if p is None else f", within their scatter (p {p:.2f})"
    return f"{_and(reads_per_transaction)}, {percent(share)} apart{scatter}"


@says(CheckKind.STEADINESS)
def _(
    runs: int, steady: int, too_short: int, unsteady: list[Mapping[str, Any]], tolerated: list[Mapping[str, Any]]
) -> str:
    if unsteady:
        each = "; ".join(f"{listed(one['runs'])} {one['because']}" for one in unsteady)
        return f"{sum(len(one['runs']) for one in unsteady)} of {runs} not: {each}"
    said = [f"all {steady} runs" if steady == runs else f"{steady} of {runs} runs"] if steady else []
    if too_short:
        said.append(f"{too_short} of {runs} too short to tell")
    for one in tolerated:
        why = "which chance explains among so many runs" if one["by_chance"] else "but too little to matter"
        said.append(f"{listed(one['runs'])} {one['because']}, {why}")
    return "; ".join(said)


@says(CheckKind.DEVICES)
def _(data_emulated: int, log_emulated: int, runs: int) -> str:
    if not data_emulated and not log_emulated:
        return "all on real ones"
    return f"{data_emulated} of {runs} runs with data on an emulated device, {log_emulated} with their log"


@says(CheckKind.STORAGE)
def _(compared: int, mixed_up: list[Finding], others: list[Mapping[str, Any]]) -> str:
    said = [*map(clause, mixed_up), *(f"{during(one['between'])}: {one['verdict']}" for one in others)]
    alike = f"the same in {compared} comparison{'s' * (compared != 1)} of probes"
    return "; ".join(said) or (alike if compared else "probed once, with nothing to compare")


@says(CheckKind.AGAIN)
def _(side: str, metric: str, drifts: list[Mapping[str, Any]]) -> str:
    if not drifts:
        return f"{TITLES[metric]} of {side} was not measured both times"
    return "; ".join(
        f"{TITLES[one['metric']]} {one['share'] * 100:.1f} % apart, "
        + (
            f"of one run; {percent(SAME)} allowed"
            if one["p"] is None
            else f"p {one['p']:.2f}; {percent(AGAIN)} allowed, {percent(SAME)} within scatter"
        )
        for one in drifts
    )


@says(CheckKind.METRIC_MEASURED)
def _(metric: str) -> str:
    return f"{TITLES[metric]} not measured in every run, or zero"


# Why two sides must not be compared. -------------------------------------------------------------------------


@says(ReasonKind.METRICS_DIFFER)
def _(metrics: Mapping[str, list[str]]) -> str:
    return f"Different primary metrics were declared: {_declared(metrics)}."


@says(ReasonKind.SETTINGS_DIFFER)
def _(differences: list[Finding]) -> str:
    return f"The runs were not made with the same settings: {_differences(differences, MOST_DIFFERENCES - 1)}."


@says(ReasonKind.RUNS_INVALID)
def _(reasons: list[Mapping[str, Any]]) -> str:
    more = f"; {len(reasons) - MOST_REASONS} more" if len(reasons) > MOST_REASONS else ""
    return f"Runs must not be compared: {'; '.join(_reason(one, MOST_NAMES) for one in reasons[:MOST_REASONS])}{more}."


@says(ReasonKind.DRIVER_BOUND)
def _(runs: list[str]) -> str:
    return f"The driver was the bottleneck in {_names(runs)}, so the server could have done more."


@says(ReasonKind.DATA_WRONG)
def _(runs: list[str]) -> str:
    return f"The data were wrong after {_names(runs)}."


@says(ReasonKind.FOREIGN_IO)
def _(share: float, runs: list[str]) -> str:
    most = "up to " * (len(runs) > 1)
    return f"Other programs used the storage: they caused {most}{percent(share)} of its I/O in {_names(runs)}."


@says(ReasonKind.CLOCK_WENT_BACK)
def _(runs: list[str]) -> str:
    return f"The clock went back before {_names(runs)} began."


@says(ReasonKind.DATA_GREW)
def _(share: float) -> str:
    return f"The database was up to {percent(share)} larger in one run than in another, or at its end."


@says(ReasonKind.READS_DIFFER)
def _(reads_per_transaction: list[float], share: float) -> str:
    return (
        f"Physical reads per transaction differ by {percent(share)} ({_and(reads_per_transaction)}) though the buffer "
        "pool is the same: it had not filled, or something besides the storage changed."
    )


@says(ReasonKind.NOT_STEADY)
def _(reasons: list[Mapping[str, Any]]) -> str:
    each = "; ".join(f"{_names(one['runs'])} {one['because']}" for one in reasons)
    return f"Runs were not steady: {each}."


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
    each = "; ".join(f"{during(one['between'])}: {clause(one['how'])}" for one in changes[:MOST_REASONS])
    return f"The storage itself changed {each}."


@says(ReasonKind.DRIFTED)
def _(side: str, metric: str, share: float) -> str:
    return (
        f"Something else changed with time: {side}, run again at the end, was {percent(share)} off itself in "
        f"{TITLES[metric]}."
    )


@says(ReasonKind.NOT_MEASURED)
def _(metric: str, a: str, b: str) -> str:
    return f"The primary metric, {TITLES[metric]}, was not measured in every run of {a} and {b}, or was zero."


# What the sides were made with. ------------------------------------------------------------------------------


@says(IntentKind.POOL)
def _(reached_bytes: int) -> str:
    return f"buffer pool {format.size(reached_bytes)}"


@says(IntentKind.DATA_DEVICE)
def _(device: str) -> str:
    return f"data on {device}"


@says(IntentKind.ARRAY)
def _(described: str) -> str:
    return f"array: {described}"


@says(IntentKind.LOG_DEVICE)
def _(device: str | None, emulated: Mapping[str, Any] | None) -> str:
    if emulated is None:
        return f"log on {device or 'unknown'}"
    rpm = emulated["rpm"]
    time = f"{rpm:,.0f} rpm" if rpm else f"{format.number(emulated['write_ms'] or 0)} ms"
    return f"log on {emulated['spindles']} emulated spindles, {time}"


_DIFFERENCES = {
    DifferenceKind.WORKLOAD: "workload",
    DifferenceKind.WORKLOAD_VERSION: "version of the workload",
    DifferenceKind.SCALE: "scale",
    DifferenceKind.SEED: "seed",
    DifferenceKind.MIX: "mix",
    DifferenceKind.LOCALITY: "locality",
    DifferenceKind.SERVER: "server",
    DifferenceKind.SERVER_VERSION: "version of the server",
    DifferenceKind.DESIGN: "physical design",
    DifferenceKind.LOAD_MACHINES: "load machines",
    DifferenceKind.CACHE_START: "cache at the start",
    DifferenceKind.RESET: "reset",
    DifferenceKind.OBSERVATION: "observation",
    DifferenceKind.CPU: "CPU of the driver’s machine",
    DifferenceKind.CORES: "cores of the driver’s machine",
    DifferenceKind.MEMORY: "memory of the driver’s machine",
    DifferenceKind.ARRIVALS: "arrivals",
    DifferenceKind.RATE: "rate of arrivals",
    DifferenceKind.THINK_TIME: "think time, ms",
    DifferenceKind.MEASURED: "seconds measured",
}


def _against(title: str) -> Callable[..., str]:
    return lambda a, b: f"{title} {_said(a)} against {_said(b)}"


for _kind, _title in _DIFFERENCES.items():
    says(_kind)(_against(_title))


@says(DifferenceKind.SETTING)
def _(name: str, a: Any, b: Any) -> str:
    return f"setting {name} {_said(a)} against {_said(b)}"


@says(DifferenceKind.POOL)
def _(a: int, b: int) -> str:
    return f"buffer pool {format.size(a)} against {format.size(b)}"


def _said(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {inner}" for key, inner in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value}"


def _declared(metrics: Mapping[str, list[str]]) -> str:
    return listed([f"{TITLES.get(key, key)} of {side}" for side, keys in metrics.items() for key in keys])


def _differences(differences: Sequence[Finding], most: int) -> str:
    more = f" and {len(differences) - most} more" if len(differences) > most else ""
    return listed([sentence(one) for one in differences[:most]]) + more


def _reason(one: Mapping[str, Any], most: int | None) -> str:
    because = one["because"]
    return f"{clause(because)} ({_names(one['runs'], most)})"


def _names(runs: Sequence[str], most: int | None = MOST_NAMES) -> str:
    """Return the names of runs; beyond `most`, how many more."""
    if most is None or len(runs) <= most:
        return listed(runs)
    return listed([*runs[:most], f"{len(runs) - most} more"])


def _and(values: Sequence[float]) -> str:
    return " and ".join(map(per_transaction, values))

"""The wording of an experiment of several loads."""

from typing import Any

from stallmark.analysis.compare.summary import Verdict
from stallmark.analysis.finding import Finding
from stallmark.analysis.load_steps import LoadsKind
from stallmark.errors import as_reason
from stallmark.format import factor, listed, number, per_second, percent, plural, quoted, share, signed
from stallmark.report.text import UNSURE, clause, indicative, says, term

NO_SLIDE = "These runs have no summary slide: no load was measured in any step."
LOADS = (
    "Throughput: committed transactions of users, queries of streams, I/Os of raw loads. Latency: scheduled to ended "
    "for users, from issuing an I/O to its end for raw loads, the mean time of a query for streams; if I/Os or queries "
    "arrive at a rate, from the time each was due. Reads: physical, by the load’s sessions, or by the raw load itself. "
    "Storage: its share of the response time, known if a load’s sessions can be separated from others’. Figures of "
    "several runs are means."
)
WAITING_UNKNOWN = (
    "For a raw load at a rate, earlier versions did not record the I/Os that were due and had not ended, and measured "
    "latency from issuing an I/O. The latency may be longer than shown, so a level that the load seems to meet is "
    "shown as unknown."
)
WAITED = (
    "Waited: of the queries at a rate that began in the step or were due by its end, the number that waited for a "
    "stream."
)
LEVEL = (
    "Service level: the figure that decides it, next to its limit. For users and streams: reads of the server’s data "
    "files by any load. For raw loads: their own I/Os."
)
TOGETHER = (
    "Together ÷ alone, in the same runs: the geometric mean over runs, with its 95 % interval if there are two runs "
    "or more. A load with a requested rate keeps its rate in either case: its latency shows the cost of the other "
    "loads."
)
CELLS = (
    "Scaling: throughput ÷ (cells × throughput of one cell); 100 % is linear. IOPS: of the data’s device, including "
    "raw loads on it; per drive if the number of drives is known. CPU and memory: the highest utilisation of the "
    "host, by all programs."
)
OWN_PAGES = "Every load of users has its own page, with transactions, charts over time and evidence."
SUM = "By the loads: the share of their sessions in all reads of the server’s data and temporary files."
PICTURE = (
    "Throughput and mean latency of every load, each on its own scale, as means over runs. Light bars: the load "
    "alone. Lines: throughput by users, or by cells relative to the fewest cells; dashed: linear scaling."
)
NO_PICTURE = "No load was measured in any step."


@says(LoadsKind.TOGETHER)
def _(step: str | None, variants: list[list[Any]], left_out: int, in_doubt: list[str], fewest_runs: int) -> str:
    texts = [
        (f"on “{variant}” " if variant is not None else "") + listed([_changed(*facts) for facts in loads])
        for variant, loads in variants
    ]
    where = f" in “{step}”" if step else ""
    between = f" ({left_out} between them)" if left_out else ""
    more = f"{between}{indicative(fewest_runs)}"
    doubt = f"; some figures of {listed(in_doubt)} are in doubt" if in_doubt else ""
    return (
        f"Running together{where}, loads had these shares of their throughput alone: {'; '.join(texts)}{more}{doubt}."
    )


def _changed(load: str, quantity: str, ratio: float, verdict: Verdict) -> str:
    text = f"{factor(ratio)} the response time alone" if quantity == "latency" else percent(ratio)
    return f"{load} {text}{_not_shown(verdict)}"


def _not_shown(verdict: Verdict) -> str:
    """Return the doubt in one ratio of several: few runs are stated for all together."""
    return f" ({UNSURE[verdict]})" if verdict == Verdict.NO_DIFFERENCE else ""


@says(LoadsKind.CELLS)
def _(variant: str | None, cells: list[int], loads: list[list[Any]], in_doubt: list[str], fewest_runs: int) -> str:
    grown = listed([f"{load} {factor(ratio)} ({percent(scaling)} of linear)" for load, ratio, scaling in loads])
    few, many = cells
    doubt = f"; some figures of {listed(in_doubt)} are in doubt" if in_doubt else ""
    on = f"“{variant}”: from" if variant else "From"
    return f"{on} {few} to {many} cells, throughput changed by these factors: {grown}{indicative(fewest_runs)}{doubt}."


@says(LoadsKind.VERDICTS)
def _(a: str, b: str, step: str, loads: list[list[Any]]) -> str:
    return f"“{b}” against “{a}” in “{step}”: {listed([_verdict(*facts) for facts in loads])}."


def _verdict(load: str, verdict: Verdict, ratio: float | None, metric: str) -> str:
    by = f" ({metric} {signed(ratio - 1)})" if ratio is not None else ""
    return f"{load} {term(verdict)}{by}"


@says(LoadsKind.VARIANTS)
def _(loads: list[list[Any]], fewest_runs: int) -> str:
    return f"{'; '.join(_best(*facts) for facts in loads)}{indicative(fewest_runs)}."


def _best(load: str, kind: str, count: int, best: str, worst: str, ratio: float, verdict: Verdict, differ: bool) -> str:
    size = {"users": f"{load} with {count} user{'s' * (count != 1)}", "streams": f"{load} with {count} streams"}
    where = size.get(kind, load)
    if not differ:
        return f"{where}: {quoted([best, worst])} barely differ"
    return f"{where}: “{best}” did {factor(ratio)} the work of “{worst}”{_not_shown(verdict)}"


@says(LoadsKind.AT_ONCE)
def _(variant: str | None, step: str | None, loads: list[list[Any]]) -> str:
    where = f"{f' on “{variant}”' if variant else ''}{f' in “{step}”' if step else ''}"
    return f"Together{where}: {listed([_did(*facts) for facts in loads])}."


@says(LoadsKind.OF_LOAD)
def _(load: str, ceiling: Finding) -> str:
    return f"{load}: {clause(ceiling)}."


def _did(load: str, kind: str, primary: str | None, rate: float, mb_per_s: float | None) -> str:
    if kind == "raw":
        return f"{load} {number(rate)} IOPS ({number(mb_per_s)} MB/s)"
    if kind == "streams":
        return f"{load} {number(rate)} queries per hour"
    return f"{load} {per_second(rate) if primary is None else f'{number(rate)} {plural(primary)}/s'}"


@says(LoadsKind.LEVELS)
def _(loads: list[list[Any]]) -> str:
    return f"Service levels: {'; '.join(_level(*facts) for facts in loads)}."


def _level(load: str, limit_ms: float, steps: int, broken: list[str], by_mean: bool, unknown: int) -> str:
    not_known = f" (unknown in {unknown} of {steps + unknown} steps)" if unknown else ""
    if not broken:
        return f"{load} within {limit_ms:g} ms{' by the mean, the only available figure' * by_mean}{not_known}"
    where = "every step" if len(broken) == steps > 1 and not unknown else quoted(broken)
    return f"{load} above {limit_ms:g} ms in {where}{not_known}"


@says(LoadsKind.HOST)
def _(cpu_share: float, memory_share: float | None, limit_share: float, unknown: int, runs: int) -> str:
    memory = f" and {share(memory_share)} of its memory in use" if memory_share is not None else ""
    host = "the CPUs" if memory_share is None else "CPUs and memory"
    if max(cpu_share, memory_share or 0.0) > limit_share:
        so = f"above {percent(limit_share)}, so {host}, and not only the storage, may limit the loads"
    elif unknown:
        so = f"unknown for {unknown} of {runs} steps, so {host} may limit the loads"
    else:
        so = f"no more than {percent(limit_share)}, so {host} do not limit the loads"
    return f"At most {share(cpu_share)} of the host’s CPU time was busy{memory}: {so}."


@says(LoadsKind.READS_UNLIKE)
def _(steps: list[str], share: float, step: str, others: list[list[Any]]) -> str:
    rest = (
        (f"; {listed([f'{percent(part)} ({process})' for process, part in others])} belong to no load")
        if others
        else ""
    )
    where = f"“{step}”" if len(steps) == 1 else f"“{step}”, of {len(steps)} steps the one with the largest difference"
    return f"In {where}, the loads’ sessions account for {percent(share)} of the server’s reads{rest}."


@says(LoadsKind.FEW_DONE)
def _(done: int, least: int, primary: str | None) -> str:
    return f"{done} {plural(primary or 'transaction')} in the step: rates based on fewer than {least} are not compared."


@says(LoadsKind.QUERIES_WAITED)
def _(load: str, steps: int, step: str, due: int, waited: int, mean_s: float, worst_s: float) -> str:
    if not waited:
        where = f"any of {steps:,} steps" if steps > 1 else f"“{step}”"
        return f"No query of {load} that began in {where}, or was due by its end, had waited for a stream."
    most = ", more than in any other step" if steps > 1 else ""
    return (
        f"Of {due:,} queries of {load} that began in “{step}” or were due by its end, {waited:,} had waited for a "
        f"stream{most}: {number(mean_s)} s on average, {number(worst_s)} s at worst."
    )


@says(LoadsKind.RAW_ENDED)
def _(load: str, seen_s: float, planned_s: float, said: str | None) -> str:
    reason = f" ({as_reason(said)})" if said else ""
    return f"The raw load “{load}” ran for {seen_s:g} of {planned_s:g} s measured: it ended early{reason}."

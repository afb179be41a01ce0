"""The wording of an experiment: its findings, how far it is, and how long it takes."""

from collections.abc import Mapping
from typing import Any

from stallmark import format
from stallmark.analysis.bottleneck import DeviceKind
from stallmark.analysis.compare.summary import Verdict
from stallmark.analysis.finding import ExperimentKind, Finding, Kind
from stallmark.format import factor, listed, number, per_second, per_transaction, percent, plural, quoted, up_to
from stallmark.report.text import UNSURE, Format, Template, clause, commit_rate, pool, rate, says, sentence, times
from stallmark.stats.thresholds import REPLICATES, SAME

# The wording of an experiment's findings.

SENTENCES: Mapping[Kind, str] = {
    ExperimentKind.DATA_WRONG: "The data were wrong after {runs:listed}: the figures of such a run are meaningless.",
    ExperimentKind.NOTHING_MEASURED: "Nothing was measured: no run reached the end of its warm-up.",
    ExperimentKind.OVER_LIMIT: (
        "In {steps:named} more than 10 % of the transactions of one type took longer than their limit or were given up."
    ),
    ExperimentKind.STORAGE_LIMITS: "Storage is the bottleneck in {steps:named}.",
    ExperimentKind.STORAGE_LIMITS_SOMETIMES: "Storage is the bottleneck in {runs} of {of} runs of “{step}”.",
    ExperimentKind.DRIVER_LIMITS: (
        "The driver was the bottleneck in {steps:named}: the server could have done more than the figures show."
    ),
    ExperimentKind.RATE_GIVEN: (
        "In {steps:named} transactions arrived at a requested rate: throughput is that rate while the server keeps up, "
        "however fast it is. Compare response times (`primary: latency`)."
    ),
    ExperimentKind.ONE_RUN_EACH: "With one run per variant this is indicative only.",
    ExperimentKind.MOST_USERS: "{variant:prefix}{users[0]:users} committed {facts:most_users}.",
    ExperimentKind.KNEE: (
        "{variant:prefix}{users[0]:users} already reached {share:percent} of the maximum; {facts:added_users}"
        "{fewest_runs:indicative}."
    ),
    ExperimentKind.DEVICES: (
        "With the same buffer pool of {facts:pool}, “{variants[1]}” gave {facts:second_rate} against "
        "{per_s[0]:per_second} in “{variants[0]}”{facts:times}{flash_warming:warming}."
    ),
    ExperimentKind.DEVICES_UNLIKE: (
        "With the same buffer pool of {facts:pool}, “{variants[0]}” and “{variants[1]}” are not compared: an emulated "
        "device does not describe a real one."
    ),
    ExperimentKind.ONE_VARIANT: "{variant} committed {facts:commits}.",
}


@says(ExperimentKind.STEPS_LEFT_OUT)
def _(left_out: int, steps: int) -> str:
    if steps == 1:  # compared with nothing anyway
        return "The one measured step supports no conclusion; the reason is given with it."
    if left_out == 1:
        return f"1 of {steps} measured steps is not compared; the reason is given with it."
    return f"{left_out} of {steps} measured steps are not compared; the reason is given with each."


@says(ExperimentKind.NO_STEADY_STATE)
def _(step: str | None, unsteady: int, runs: int, how: Finding) -> str:
    several = f"in {unsteady} of {runs} runs" if runs > 1 else ""
    where = ", ".join(filter(None, [quoted([step]) if step else "", several]))
    return f"{where[0].upper()}{where[1:]}: {clause(how)}." if where else sentence(how)


@says(ExperimentKind.AGAINST_FIRST)
def _(
    first: str, per_s: float, primary: str | None, others: list[list[Any]], left_out: int, ranked: bool,
    not_comparable: int, one_run_each: bool,
) -> str:  # fmt: skip
    apart = [name for name, _, verdict in others if verdict == Verdict.NOT_COMPARABLE]
    unlike = f"{quoted(apart)} {'is' if len(apart) == 1 else 'are'} not comparable" if apart else ""
    if len(apart) == len(others):
        return f"{unlike} with “{first}” ({rate(per_s, primary)})."
    known = [(name, ratio, verdict) for name, ratio, verdict in others if name not in apart]
    text = listed([f"“{name}” {_ratio_text(ratio, verdict, one_run_each)}" for name, ratio, verdict in known])
    between = f", and {left_out} {'between them' if ranked else 'more'}" if left_out else ""
    between += f", and {not_comparable} that are not comparable" if not_comparable else ""
    once = "; one run each, so indicative only" if one_run_each else ""
    return f"Against “{first}” ({rate(per_s, primary)}): {text}{between}{once}{f'; {unlike}' if unlike else ''}."


def _ratio_text(ratio: float | None, verdict: Verdict, once: bool) -> str:
    """Return the ratio of a variant to the first; `once`: each variant ran once, which is stated for all together."""
    if ratio is None:
        return "is not known"
    return f"{factor(ratio)}{f' ({UNSURE[verdict]})' if verdict in UNSURE and not once else ''}"


@says(ExperimentKind.POOL)
def _(
    variants: list[str] | None,
    pools_bytes: list[int | None],
    pools_share: list[float | None],
    per_s: list[float],
    ratio: float | None,
    verdict: Verdict,
    differ: bool,
    primary: str | None,
    reads_per_transaction: list[float | None],
) -> str:
    small, large = map(pool, pools_bytes, pools_share)
    where = f"From {quoted(variants[:1])} to {quoted(variants[1:])}, growing" if variants else "Growing"
    transactions = plural(primary) if primary else "committed transactions"
    a, b = map(per_second, per_s)
    verb = "raised" if per_s[1] > per_s[0] else "lowered"
    verb = "took" if verdict == Verdict.NO_DIFFERENCE else verb
    change = (
        f"{verb} {transactions} from {a} to {b}{_times(ratio, verdict)}"
        if differ
        else f"barely changed {transactions} ({a} and {b}{f', {UNSURE[verdict]}' if verdict in UNSURE else ''})"
    )
    return f"{where} the buffer pool from {small} to {large} {change}{_reads(*reads_per_transaction)}."


def _reads(before: float | None, after: float | None) -> str:
    if before is None or after is None:
        return ""
    a, b = per_transaction(before), per_transaction(after)
    if a == b:
        return f"; physical reads per transaction stayed at {a}"
    return f"; physical reads per transaction {'fell' if after < before else 'rose'} from {a} to {b}"


@says(ExperimentKind.POOL_GAIN)
def _(ratio: float, verdict: Verdict, pools_bytes: list[int | None], pools_share: list[float | None]) -> str:
    before, after = map(pool, pools_bytes, pools_share)
    return f"The largest single gain, {times(ratio, verdict)}, is between {before} and {after}."


@says(ExperimentKind.FLASH)
def _(
    step: str, flash: str, share: float, read_ms: float, spindle_read_ms: float | None,
    halves_share: list[float] | None, warming: int, runs: int, of: int,
) -> str:  # fmt: skip
    others = f", and the disks the others in {number(spindle_read_ms)} ms" if spindle_read_ms else ""
    warmed = ""
    if halves_share:
        first, second = map(percent, halves_share)
        partly = f" in {warming} of {runs} runs" if warming < runs else ""
        warmed = (
            f"; it was still warming up{partly}: {first} in the first half of the measured interval, {second} in the "
            "second"
        )
    part = f" ({runs} of {of} runs)" if runs < of else ""
    return (
        f"In {quoted([step])}{part} the flash {flash} answered {percent(share)} of the reads, in {number(read_ms)} ms "
        f"each{others}{warmed}."
    )


@says(ExperimentKind.VARIANTS_ALIKE)
def _(
    variants: list[str], per_s: list[float], ratio: float | None, verdict: Verdict, primary: str | None, every: bool
) -> str:  # fmt: skip
    unsure = f"; {UNSURE[verdict]}" if verdict in UNSURE else ""
    which = "All variants" if every else "The variants that may be compared"
    return f"{which} committed about the same: {number(per_s[0])} to {commit_rate(per_s[1], primary)}{unsure}."


@says(ExperimentKind.VARIANTS)
def _(
    variants: list[str], per_s: list[float], ratio: float | None, verdict: Verdict, primary: str | None, every: bool
) -> str:  # fmt: skip
    (worst, best), (least, most) = variants, per_s
    between = f" ({factor(ratio)} between them{f', {UNSURE[verdict]}' if verdict in UNSURE else ''})" if ratio else ""
    among = "" if every else "Of the variants that may be compared, "
    return f"{among}{best} committed most, {commit_rate(most, primary)}; {worst} least, {per_second(least)}{between}."


@says(ExperimentKind.STREAMS)
def _(
    streams: int, queries_per_h: float, users: int, per_s: float, alone_per_s: float | None, ratio: float | None,
    verdict: Verdict | None, primary: str | None,
) -> str:  # fmt: skip
    against = f" against {per_second(alone_per_s)} alone{_times(ratio, verdict)}" if alone_per_s else ""
    return (
        f"{streams} stream{'s' * (streams > 1)} of queries did {number(queries_per_h)} queries per hour next to "
        f"{format.users(users)}, who committed {commit_rate(per_s, primary)}{against}."
    )


@says(ExperimentKind.DISTURBED)
def _(
    variant: str, maintenance: str, done: int, mean_s: float | None, share: float, failed: int, runs: int, per_s: float,
    alone_per_s: float | None, ratio: float | None, verdict: Verdict | None, primary: str | None,
) -> str:  # fmt: skip
    ended = f"{done:,} ended, after {number(mean_s)} s each" if mean_s else "none ended"
    against = f" against {per_second(alone_per_s)} without it{_times(ratio, verdict)}" if alone_per_s else ""
    how = f"failed{f' in {failed} of {runs} runs' if runs > 1 else ''}, and " if failed else ""
    return (
        f"{variant}: a {maintenance} {how}ran during {percent(share)} of the measured time ({ended}); the users "
        f"committed {commit_rate(per_s, primary)}{against}."
    )


@says(ExperimentKind.STORAGE_DOES_NOT_LIMIT)
def _(step: str, verdict: Finding, runs: int, of: int) -> str:
    if of == 1:
        return f"{quoted([step])}: {clause(verdict)}."
    which = "the first" if runs == of else "the first of these"
    return f"{quoted([step])}, in {runs} of {of} runs (with the figures of {which}): {clause(verdict)}."


@says(ExperimentKind.STORAGE_NOT_KNOWN)
def _(steps: list[str] | None, because: DeviceKind | None) -> str:
    where = quoted(steps) if steps else "any step"
    return f"It is unknown whether storage is the bottleneck in {where}: {_NOT_JUDGED[because]}."


_NOT_JUDGED = {
    None: "too few sessions and devices were observed",
    DeviceKind.NOT_TOLD: "the load kept too few sessions busy",
    DeviceKind.NOT_DIVIDED: "sessions in I/O may have waited for storage or for a CPU",
    DeviceKind.CPUS_BUSY_OTHERWISE: "the CPUs were mostly busy with other work",
}


@says(ExperimentKind.SPREAD)
def _(share: float, fewest_runs: int) -> str:
    few = "" if fewest_runs >= REPLICATES else f"; a verdict needs at least {REPLICATES} runs of each"
    return f"Runs of the same variant differed by {up_to(share)}{few}."


def _times(ratio: float | None, verdict: Verdict | None) -> str:
    """Return a ratio with the doubt in its verdict, in brackets; empty if it is not known."""
    return f" ({times(ratio, verdict)})" if ratio else ""


def _prefix(variant: str | None) -> str:
    return f"{variant}: " if variant else ""


def _most_users(facts: Mapping[str, Any]) -> str:
    (few, most), per_s = facts["users"], facts["per_s"]
    if few == most:  # the fewest users of all steps
        return f"most, {commit_rate(per_s[0], facts['primary'])}"
    maximum = f"the maximum was {per_second(per_s[1])} with {format.users(most)}"
    return f"{commit_rate(per_s[0], facts['primary'])}; {maximum}{_times(facts['ratio'], facts['verdict'])}"


def _added_users(facts: Mapping[str, Any]) -> str:
    """Return the effect of more users than at the knee."""
    users, latency = format.users(facts["users"][1]), " to ".join(map(number, facts["latency_mean_ms"]))
    if facts["last_share"] < 1 - SAME:
        fell = f"{users} reached only {percent(facts['last_share'])} of it"
        return f"{fell}, and the mean latency went from {latency} ms"
    return f"more users only queue: the mean latency went from {latency} ms with {users}"


FORMATS: Mapping[str, Format] = {
    "added_users": _added_users,
    "commits": lambda facts: commit_rate(facts["per_s"], facts["primary"]),
    "most_users": _most_users,
    "second_rate": lambda facts: rate(facts["per_s"][1], facts["primary"]),
    "prefix": _prefix,
    "times": lambda facts: _times(facts["ratio"], facts["verdict"]),
    "warming": lambda warming: ", while flash was still warming up" if warming else "",
}


NO_SLIDE = "These records have no summary slide: it shows the throughput and response time of users."
NO_FINDING = "No finding: the record does not support one."


def emulated_runs(emulated: int, runs: int) -> str:
    """Return the sentence about runs on emulated arrays."""
    which = "All runs" if emulated == runs else f"{emulated} of {runs} runs"
    return (
        f"{which} used a device whose service times Stallmark injected. They show how this database responds to such a "
        "device; they do not measure a product."
    )


further_cautions = Template("{count} more cautions are in the report.")


# The sentences on how far an experiment is, of `stallmark status` and of the live page.


def asks(variant: str, question: str) -> str:
    """Return the note that the operator is asked before a variant."""
    return f"Before “{variant}” the operator is asked: {question}"


go_on = Template("{command} makes the remaining runs.")


silent = Template(
    "Nothing was written for {silent_s:duration}: the experiment was killed, or its machine is suspended "
    "or cannot reach this folder. If it was killed, {command} resumes it."
)


# The sentences about how long an experiment takes.


def takes(
    total_s: float, build_s: float, *, at_most: bool = False, asks: bool = False, longest_s: float | None = None
) -> str:
    """Return the duration of an experiment: "about 4 minutes, including about 20 seconds to load the database"."""
    text = f"{'at most ' * at_most}about {format.roughly(total_s)}"
    if longest_s is not None:
        text += f" (at most {format.roughly(longest_s)}, if levels contradict each other)"
    if build_s >= 1:
        text += f", including about {format.roughly(build_s)} to load the database"
    return text + (", plus the operator’s work" if asks else "")


def work_and_duration(work: str, load_s: float, takes: str, *, at_most: bool = False) -> str:
    """Return the coming work and its duration: "4 runs, 2 minutes of load in all; it takes about 3 minutes"."""
    load = f", {'at most ' * at_most}{format.duration(load_s)} of load in all" if load_s else ""
    return f"{work}{load}; it takes {takes}"


def time_left(left_s: float, *, refined: bool) -> str:
    """Return the time left, and whether it is based on the experiment's own runs."""
    by = "based on the completed runs" if refined else "as estimated before the first run completed"
    return f"about {format.roughly(left_s)} left, {by}" if left_s >= 1 else f"it should have ended by now, {by}"

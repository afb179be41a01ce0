"""The wording of cautions: conclusions that an experiment does not allow."""

from collections.abc import Mapping, Sequence
from typing import Any

from stallmark.analysis.cautions import CautionKind, PageCacheKind
from stallmark.analysis.compare.settings import StorageKind
from stallmark.analysis.environment_cautions import AboveKind, ArrayKind, HistoryKind
from stallmark.analysis.finding import DataKind, EndKind, Finding, Kind
from stallmark.errors import as_reason
from stallmark.format import count, factor, listed, percent, quoted, size
from stallmark.report.text import clause, depth, says, scope, sentence
from stallmark.stats.thresholds import REPLICATES

# The wording of the caution on I/O above the device.


@says(AboveKind.ABOVE)
def _(steps: list[str] | None, share: list[float], limits: Sequence[Mapping[str, Any]]) -> str:
    least, most = map(percent, share)
    shares = most if least == most else f"{least} to {most}"
    lead = (
        f"In {scope(steps)} {shares} of the time in storage was above the device: I/Os waited before the device’s "
        "counters began"
    )
    if limits:
        return f"{lead}. When the run began, a control group limited the server to {listed(list(map(_limit, limits)))}."
    return (
        f"{lead}. Possible reasons are a limit of a container or service, a queue before the device, or a stacked or "
        "network file system. The record names no such limit."
    )


def _limit(limit: Mapping[str, Any]) -> str:
    kind, per_s = limit["limited"], limit["per_s"]
    amount = f"{size(per_s)}{kind.removeprefix('bytes')}" if kind.startswith("bytes") else f"{count(per_s)} {kind}"
    return f"{amount} per second ({limit['file']})"


# The wording of what data of several versions differ in.

_NEW_ROWS_AND_INPUTS = {"brokerage": 3}
"""The version with which both changed, by workload. Of others it is known only that one of three did."""


@says(DataKind.MIXED_VERSIONS)
def _(workload: str, versions: Sequence[int]) -> str:
    return (
        f"The runs are not compared: the data of {workload} were built by data version "
        f"{listed(list(map(str, versions)))}, with {changes(workload, versions)}. Compare only runs of one version."
    )


def changes(workload: str, versions: Sequence[int]) -> str:
    """Return the differences between some versions of a workload's data."""
    changed = _NEW_ROWS_AND_INPUTS.get(workload)
    if changed is not None and min(versions) < changed <= max(versions):
        return "different rows and inputs"
    return "different rows, inputs or procedures"


SENTENCES: Mapping[Kind, str] = {
    PageCacheKind.IN_CACHE: (
        "Direct I/O in {places:listed} went through this system’s page cache{file_system:in_brackets}: reads may have "
        "come from memory instead of storage."
    ),
    PageCacheKind.ON_LOOP: (
        "Files in {places:listed} were on the loop device {loop}, whose own file is read through this system’s page "
        "cache: reads may have come from memory. `losetup --direct-io=on /dev/{loop}` makes it bypass the cache."
    ),
    PageCacheKind.NOT_SEEN: (
        "It is unknown whether direct I/O in {places:listed} bypassed the system’s page "
        "cache{file_system:in_brackets}: reads may have come from memory."
    ),
    CautionKind.NOT_SHOWN: (
        "These records have parts of {capabilities:listed}, which this installation of Stallmark lacks: they are not "
        "shown."
    ),
    CautionKind.EMULATED: (
        "The figures of {steps:named} show how the database reacts to an emulated device. They do not describe any "
        "real device."
    ),
    CautionKind.EMULATED_LATE: (
        "In {steps:named} the real device was slower than the emulated one for up to {share:percent} of the I/Os, so "
        "the emulated device was slower than described."
    ),
    CautionKind.SCATTER: "Two runs may differ by more than the seconds within one run suggest.",
    CautionKind.FEW_CHECKPOINTS: (
        "The measured interval of {steps:named} contained fewer than {CHECKPOINTS} complete checkpoint cycles: the "
        "amount and time of writes partly depend on where the interval began."
    ),
    CautionKind.IRREGULAR_CHECKPOINTS: (
        "Checkpoints came too irregularly in {steps:named}: the measured interval could not be cut to complete "
        "checkpoint cycles."
    ),
    CautionKind.UNSTEADY: (
        "No steady state was reached in {steps:named}: the figures depend on the time of measurement, and other "
        "minutes would give different ones."
    ),
    CautionKind.WARM_UP_MEASURED: (
        "Part of the warm-up was measured in {steps:named}: warm up longer, or until it is steady (`warm_up: "
        "{{until: steady, at_most: …}}`)."
    ),
    CautionKind.TOO_SHORT: "In {steps:named} the measured interval was too short to judge steadiness.",
    CautionKind.NOT_STEADY_IN_TIME: (
        "No steady state was reached within the longest warm-up ({at_most_s:g} s) in {steps:named}: measuring began "
        "anyway."
    ),
    CautionKind.DERIVED: (
        "The workload {workload} is derived from {model} and not comparable with published {model} results."
    ),
    CautionKind.OWN_ADDRESS: (
        "The server was reached at an address of the driver’s own machine: unless that is a tunnel, the driver used "
        "the server’s CPUs."
    ),
    CautionKind.COLD_START: (
        "A cold start empties the server’s caches. A cache inside the device cannot be emptied from here."
    ),
    CautionKind.GREW: "The database grew by {share:up_to} within a run ({runs:listed}).",
    CautionKind.RESUMED: (
        "The experiment ended early and was resumed {gap_s:duration} later with {run}: changes of the server or its "
        "storage in between separate the runs before from those after."
    ),
    CautionKind.CONDITION_REFUSED: (
        "“{condition}” was not checked after {runs:listed}: the server refused it ({said:as_reason})."
    ),
    CautionKind.CPU_IN_READ_TIME: (
        "The server’s mean read time in {steps:named} may include waiting for a CPU (it is below "
        "{SCHEDULING_MS:g} ms, or the CPUs were more than {SCHEDULING_CPU:percent} busy): the "
        "device itself may be faster."
    ),
    CautionKind.COUNTED_AT_END: (
        "PostgreSQL adds a session’s reads and writes to its counters when a transaction ends. In {steps:named} "
        "transactions took up to {longest_s:number} s of the {measured_s:.0f} s measured: the counts include some I/O "
        "from before the measured interval, and lack some from its end. Measure longer."
    ),
    ArrayKind.SIZE_UNKNOWN: (
        "The scenario does not specify the array’s DRAM and flash, so the active data cannot be compared with them: "
        "possibly only DRAM was measured. Add them to the scenario (`array: {{dram: 8GiB, flash_cache: 800GB}}`)."
    ),
    ArrayKind.SMALL_PROBE: (
        "Probes around runs used a file of {file_bytes:size}. An array with that much memory or flash serves the file "
        "from there, so its disks are barely measured; use a larger file (`probe: {{size: …}}`)."
    ),
    ArrayKind.NOT_PRECONDITIONED: (
        "{run}: writes were not steady after {rounds} rounds of overwriting a file of {file_bytes:size} at random, "
        "and the run was measured anyway ({write_ms[0]:number} ms per write in the first round, {write_ms[1]:number} "
        "in the last)."
    ),
}


@says(CautionKind.LOCAL_DRIVER)
def _(steps: list[str] | None) -> str:
    where = f"In {quoted(steps)} the" if steps else "The"
    return (
        f"{where} driver ran on the server’s machine and used its CPUs: with the driver on another machine the server "
        "would have more CPU time."
    )


@says(CautionKind.RESTORED)
def _(steps: list[str] | None) -> str:
    runs = f"On a real device {quoted(steps)}" if steps else "Every run on a real device"
    return (
        f"{runs} began with a restored database. Restoring rewrites what a storage array caches and tiers, so the "
        "array did not begin in the state of a system in use."
    )


@says(CautionKind.NOT_RESET)
def _(steps: list[str] | None) -> str:
    which = f"Runs of {quoted(steps)}" if steps else "Runs"
    return f"{which} were not reset (`reset: continue`): each began with the data that the previous run had left."


@says(CautionKind.FEW_RUNS)
def _(fewest: int, most: int) -> str:
    runs = f"{fewest} to {most}" if most > fewest else "One" if most == 1 else f"{most}"
    counted = f"{runs} run per variant is" if most == 1 else f"{runs} runs per variant are"
    return (
        f"{counted} indicative: another run of the same variant may differ by several percent. A verdict needs "
        f"{REPLICATES} or more runs of each variant."
    )


@says(CautionKind.BESIDE)
def _(loads: list[str], steps: list[str] | None, sampled: bool) -> str:
    own = ["transactions", "response times", "errors", *(["sampled states of sessions"] if sampled else [])]
    return (
        f"In {scope(steps)} other loads ran as well ({listed(loads)}): I/O, the server’s counts of waits, CPU and the "
        f"device’s counters cover all loads together; {listed(own)} are this load’s own."
    )


@says(HistoryKind.SHALLOW)
def _(
    customers: int, days: float, trades_per_account: float, varied: list[str], least_days: int, with_customers: int,
    least_bytes: int | None,
) -> str:  # fmt: skip
    judged = f"{listed(varied)} {'are' if len(varied) > 1 else 'is'} judged wrongly"
    least = f": with {with_customers:,} customers about {size(least_bytes)}" if least_bytes else ""
    return (
        f"A brokerage of {customers:,} customers with {depth(days, trades_per_account)} has too short a history: the "
        f"latest trades of an account are a large part of it, so too much of the data is hot and {judged}. Use at "
        f"least {least_days} days{least}."
    )


@says(CautionKind.READS_AHEAD)
def _(method: str, steps: list[str] | None, times: float | None) -> str:
    longer = f"the device took up to {factor(times)} as long" if times else "they may have taken longer"
    return (
        f"PostgreSQL begins reads of scans ahead (io_method is {method}) and counts the time that sessions waited for "
        f"them, not their duration: in {scope(steps)} {longer}."
    )


@says(ArrayKind.ACTIVE)
def _(steps: list[str] | None, warning: Finding) -> str:
    return f"{quoted(steps)}: {clause(warning)}." if steps else sentence(warning)


@says(ArrayKind.FLASH_WARMING)
def _(steps: list[str] | None) -> str:
    return (
        f"Flash was still warming up in {quoted(steps) if steps else 'the measured interval'}: its share of the reads "
        "kept growing. It would have answered more later, so these figures are not a final comparison of a cache and "
        "a tier."
    )


@says(EndKind.EXPERIMENT)
def _(before: str, said: str | None) -> str:
    if said:
        return f"The experiment ended before “{before}”: {as_reason(said)}."
    return f"“{before}” was still being prepared, or Stallmark was killed meanwhile: it has no run here."


@says(StorageKind.ONE_DISK)
def _(role: str, disk: str, folders: list[str]) -> str:
    return (
        f"The {'log' if role == 'wal' else 'data'} files of these runs were in different folders of one disk, {disk} "
        f"({', '.join(folders)}): the runs do not differ in the disk."
    )


@says(ArrayKind.DRIFTED)
def _(between: list[str], how: Finding) -> str:
    text = during(between)
    return f"{text[0].upper()}{text[1:]}: {clause(how)}."


def during(between: Sequence[str]) -> str:
    """Return "during RUN", or "from RUN to RUN"."""
    return f"during {between[0]}" if len(between) == 1 else f"from {between[0]} to {between[1]}"

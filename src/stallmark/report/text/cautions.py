"""The wording of cautions: conclusions that an experiment does not allow."""

from collections.abc import Sequence

from stallmark.analysis.array_cautions import ArrayKind
from stallmark.analysis.cautions import CautionKind
from stallmark.analysis.compare.storage import StorageKind
from stallmark.analysis.ends import EndKind
from stallmark.analysis.finding import Finding
from stallmark.analysis.shallow_history import HistoryKind
from stallmark.errors import as_reason
from stallmark.format import duration, factor, listed, number, percent, quoted, size, spoken, up_to
from stallmark.report.text import clause, says, sentence
from stallmark.report.text.scale import depth
from stallmark.report.text.terms import named
from stallmark.stats.thresholds import CHECKPOINTS, REPLICATES, SCHEDULING_CPU, SCHEDULING_MS


@says(CautionKind.EMULATED)
def _(steps: list[str] | None) -> str:
    return (
        f"The figures of {named(steps)} show how the database reacts to an emulated device. They say nothing about "
        "any real device."
    )


@says(CautionKind.EMULATED_LATE)
def _(steps: list[str] | None, share: float) -> str:
    return (
        f"In {named(steps)} the real device was slower than the emulated one for up to {percent(share)} of the I/Os: "
        "the emulated device was slower than its description says."
    )


@says(CautionKind.FEW_RUNS)
def _(fewest: int, most: int) -> str:
    some = f"{fewest} to {most}" if most > fewest else "One" if most == 1 else f"{most}"
    each = f"{some} run per variant is" if most == 1 else f"{some} runs per variant are"
    return (
        f"{each} indicative: another run of the same variant may differ by several percent. A verdict needs "
        f"{REPLICATES} or more of each."
    )


@says(CautionKind.SCATTER)
def _() -> str:
    return "The scatter of seconds within a run is not the scatter between runs, and sets no bound to it."


@says(CautionKind.FEW_CHECKPOINTS)
def _(steps: list[str] | None) -> str:
    return (
        f"The measured interval of {named(steps)} held fewer than {CHECKPOINTS} whole checkpoint cycles: how much was "
        "written, and when, partly depends on where the interval began."
    )


@says(CautionKind.IRREGULAR_CHECKPOINTS)
def _(steps: list[str] | None) -> str:
    return (
        f"Checkpoints came too irregularly in {named(steps)}: the measured interval could not be cut to whole "
        "checkpoint cycles."
    )


@says(CautionKind.UNSTEADY)
def _(steps: list[str] | None) -> str:
    return (
        f"No steady state was reached in {named(steps)}: the figures depend on when they were taken, and other "
        "minutes would give others."
    )


@says(CautionKind.WARM_UP_MEASURED)
def _(steps: list[str] | None) -> str:
    return (
        f"Part of the warm-up was measured in {named(steps)}: warm up longer, or until it is steady "
        "(warm_up: {until: steady, at_most: …})."
    )


@says(CautionKind.TOO_SHORT)
def _(steps: list[str] | None) -> str:
    return f"Too little was measured to tell whether it was steady in {named(steps)}."


@says(CautionKind.NOT_STEADY_IN_TIME)
def _(steps: list[str] | None, at_most_s: float) -> str:
    return (
        f"No steady state was seen within the {at_most_s:g} s that a warm-up may take in {named(steps)}: measuring "
        "began all the same."
    )


@says(CautionKind.DERIVED)
def _(workload: str, model: str) -> str:
    return f"The workload {workload} is derived from {model} and not comparable with published {model} results."


@says(CautionKind.LOCAL_DRIVER)
def _() -> str:
    return "The driver ran on the server’s machine and used its CPUs: a load from elsewhere would leave it more."


@says(CautionKind.BESIDE)
def _(loads: list[str], steps: list[str] | None, sampled: bool) -> str:
    own = ["transactions", "response times", "errors", *(["what sessions were seen doing"] if sampled else [])]
    return (
        f"In {named(steps)} other loads ran as well ({listed(loads)}): I/O, waits that the server counts, CPU and the "
        f"device’s counters are of all of them together; {listed(own)} are this load’s own."
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


@says(CautionKind.OWN_ADDRESS)
def _() -> str:
    return (
        "The server was reached at an address of the driver’s own machine: unless that is a tunnel, the driver used "
        "the server’s CPUs."
    )


@says(CautionKind.RESTORED)
def _() -> str:
    return (
        "Every run on a real device began with a restored database. Restoring rewrites what a storage array caches and "
        "tiers, so the array started over as well."
    )


@says(CautionKind.COLD_START)
def _() -> str:
    return "A cold start empties the server’s caches. A cache inside the device cannot be emptied from here."


@says(CautionKind.GREW)
def _(share: float, runs: list[str]) -> str:
    return f"The database grew by {up_to(share)} within a run ({listed(runs)})."


@says(CautionKind.RESUMED)
def _(run: str, gap_s: float) -> str:
    return (
        f"The experiment ended early and was resumed {duration(gap_s)} later with {run}: what changed in "
        "between on the server or its storage lies between the runs before and after."
    )


@says(CautionKind.CONDITION_REFUSED)
def _(condition: str, said: str, runs: list[str]) -> str:
    return f"“{condition}” was not checked after {listed(runs)}: the server refused it ({as_reason(said)})."


@says(CautionKind.CPU_IN_READ_TIME)
def _(steps: list[str] | None) -> str:
    return (
        f"The server’s mean read time in {named(steps)} may include waiting for a CPU (it is below "
        f"{SCHEDULING_MS:g} ms, or the CPUs were more than {percent(SCHEDULING_CPU)} busy): it is not the "
        "device’s alone."
    )


@says(CautionKind.TIMER_MISSED)
def _(transaction: str, done: int, due: int, steps: list[str] | None) -> str:
    return (
        f"{spoken(transaction)} ended as few as {done:,} of the {due:,} times it was due in {named(steps)}: the one "
        "before was still running. What it reads and writes is less than the load asks for."
    )


@says(CautionKind.COUNTED_AT_END)
def _(steps: list[str] | None, longest_s: float, measured_s: float) -> str:
    return (
        f"PostgreSQL counts what a session read and wrote when its transaction ends. In {named(steps)} that took up to "
        f"{number(longest_s)} s, and {measured_s:.0f} s were measured: the server’s counts are in part of I/O from "
        "before, and lack some of the last. Measure for longer."
    )


@says(CautionKind.READS_AHEAD)
def _(method: str, steps: list[str] | None, times: float | None) -> str:
    longer = f"the device took up to {factor(times)} as long" if times else "they may have taken longer"
    return (
        f"PostgreSQL begins reads of scans ahead (io_method is {method}) and counts how long sessions waited for them, "
        f"not how long they took: in {named(steps)} {longer}."
    )


@says(ArrayKind.ACTIVE)
def _(steps: list[str] | None, warning: Finding) -> str:
    return f"{quoted(steps)}: {clause(warning)}." if steps else sentence(warning)


@says(ArrayKind.SIZE_UNKNOWN)
def _() -> str:
    return (
        "The scenario does not say how much DRAM and flash the array has, so the active data cannot be compared with "
        "them: perhaps DRAM alone was measured. Write it into the scenario (array: {dram: 8GiB, flash_cache: 800GB})."
    )


@says(ArrayKind.FLASH_WARMING)
def _(steps: list[str] | None) -> str:
    return (
        f"Flash was still warming up in {quoted(steps) if steps else 'what was measured'}: it answered ever more of "
        "the reads. Later it would have given more, so these figures do not rank a cache and a tier for good."
    )


@says(ArrayKind.SMALL_PROBE)
def _(file_bytes: int) -> str:
    return (
        f"Probes around runs: the file that was read and written has {size(file_bytes)}. An array with as much memory "
        "or flash answers from there, and its disks are hardly seen; a larger file (probe: {size: …}) shows them."
    )


@says(EndKind.EXPERIMENT)
def _(before: str, said: str | None) -> str:
    if said:
        return f"The experiment ended before “{before}”: {as_reason(said)}."
    return f"“{before}” was still being prepared, or Stallmark was killed meanwhile: it has no run here."


@says(StorageKind.ONE_DISK)
def _(role: str, disk: str, folders: list[str]) -> str:
    return (
        f"The {'log' if role == 'wal' else 'data'} of these runs lay in different folders of one disk, {disk} "
        f"({', '.join(folders)}): what differs between them is not the disk."
    )


@says(ArrayKind.NOT_PRECONDITIONED)
def _(run: str, file_bytes: int, rounds: int, write_ms: list[float]) -> str:
    return (
        f"{run}: writes were not steady after {rounds} rounds of overwriting a file of {size(file_bytes)} at random, "
        f"and it was measured all the same ({number(write_ms[0])} ms per write in the first round, "
        f"{number(write_ms[1])} in the last)."
    )


@says(ArrayKind.DRIFTED)
def _(between: list[str], how: Finding) -> str:
    text = during(between)
    return f"{text[0].upper()}{text[1:]}: {clause(how)}."


def during(between: Sequence[str]) -> str:
    """Return "during RUN", or "from RUN to RUN"."""
    return f"during {between[0]}" if len(between) == 1 else f"from {between[0]} to {between[1]}"

"""The wording of a step's device, is it the bottleneck, and of the laws that its figures must obey."""

from collections.abc import Iterable, Mapping, Sequence

from stallmark.analysis.bottleneck import DeviceKind, JudgedDevice
from stallmark.analysis.finding import Kind
from stallmark.analysis.step_summary import Law, LawKind
from stallmark.format import listed, number, percent, up_to
from stallmark.record.devices import DeviceLabel
from stallmark.report.text import PART_NAMES, Format, Template, says
from stallmark.stats.thresholds import DEVICE_OWN, LOCKS_SAID, LOG_SAID

# The wording of the verdict on a step's device: is it the bottleneck?

EMULATED = "EMULATED"


def labelled(device: DeviceLabel) -> str:
    """Return the name of a device; that of an emulated one begins with EMULATED."""
    return f"{EMULATED} {device.name}" if device.emulated else device.name


def device_names(devices: Iterable[DeviceLabel]) -> str:
    """Return each device once, without EMULATED: for text that already mentions it."""
    return "; ".join(dict.fromkeys(device.name for device in devices if device.name))


_NAMES = {JudgedDevice.DATA: "device", JudgedDevice.LOG: "log’s device"}


SENTENCES: Mapping[Kind, str] = {
    DeviceKind.ABOVE_LIMITS: "Storage above the {device:name} is the bottleneck: {facts:rests_on}.",
    DeviceKind.NOT_DIVIDED: (
        "It is unknown whether storage is the bottleneck: {facts:rests_on}. Sessions in I/O also waited above the "
        "device or for a CPU: these cannot be separated, because the CPU time of sessions is unknown."
    ),
    DeviceKind.LIMITS: "The {device:name} is the bottleneck: {facts:rests_on}.",
    DeviceKind.LATENCY_LIMITS: (
        "The latency of the {device:name}, rather than its queue, is the bottleneck: {facts:rests_on}."
    ),
    DeviceKind.NOT_LIMITING: "The {device:name} is not the bottleneck: {facts:rests_on}.",
    DeviceKind.ONE_OF_SEVERAL: "The {device:name} is one limit among several: {facts:rests_on}.",
    DeviceKind.WITH_CPUS: "The {device:name} and the CPUs are limits together: {facts:rests_on}.{gain_share:at_most}",
    DeviceKind.CPUS_LIMIT: "The CPUs are the bottleneck: {facts:rests_on}.{gain_share:at_most}",
    DeviceKind.CPUS_BUSY_OTHERWISE: (
        "The CPUs were mostly busy with other work, so the {device:name} is not judged as a bottleneck: "
        "{facts:rests_on}. The run accounts for {cpu_own_share:percent} of the CPUs."
    ),
}


@says(DeviceKind.NOT_TOLD)
def _(spent_in: str, share: float, cpu_share: float | None = None, cpu_own_share: float | None = None) -> str:
    idle = {"client": "in the client", "lock": "waiting for each other’s locks"}[spent_in]
    text = f"The load does not test the device: users spent {percent(share)} of their time {idle}"
    if cpu_share is None:
        return f"{text}."
    own = f", of which the run itself used {percent(cpu_own_share)}" if cpu_own_share is not None else ""
    return f"{text}, and the CPUs of the server’s machine were {percent(cpu_share)} busy{own}."


def _possible_gain(gain_share: float | None) -> str:
    if gain_share is None:  # the rate of an open loop
        return ""
    more = f"{up_to(gain_share)} more" if gain_share > 0 else "no more"
    return f" Faster storage alone could give {more} throughput."


def _rests_on(
    device: JudgedDevice,
    io_share: float | None = None,
    log_share: float = 0.0,
    lock_share: float = 0.0,
    progress_share: float = 0.0,
    device_share: float = 1.0,
    above_share: float = 0.0,
    busy_share: float | None = None,
    cpu_share: float | None = None,
    cpu_own_share: float | None = None,
    gain_share: float | None = None,
) -> str:
    loads = [f"the {_NAMES[device]} was {percent(busy_share)} busy"] if busy_share is not None else []
    loads += [f"the host’s CPUs were {percent(cpu_share)} busy"] if cpu_share is not None else []
    if io_share is None:
        return listed(loads)
    parts = [(io_share, "in I/O of data files")]
    if log_share >= LOG_SAID:
        parts.append((log_share, "writing the log"))
    if lock_share >= LOCKS_SAID:
        parts.append((lock_share, "waiting for locks"))
    parts.sort(key=lambda part: -part[0])
    spent = [f"{percent(share)} {'' if n else 'of their time '}{doing}" for n, (share, doing) in enumerate(parts)]
    above = f", {percent(above_share)} above the device" if above_share > 1 - DEVICE_OWN else ""
    own = f" ({percent(device_share)} of that I/O in the device itself{above})" if device_share < DEVICE_OWN else ""
    rest = ""
    if lock_share > io_share + log_share:
        # One who waits for a lock waits for its holder: the verdict is on the time of those who hold or need none.
        rest = f"; outside locks and the client, the devices took {percent(progress_share)} of their time"
    return f"users spent {listed(spent)}{own}" + (f" while {listed(loads)}" if loads else "") + rest


# How to read the tables of arrays, and the chart of what was active. ------------------------------------------

DESCRIBED_ARRAY = "As described in the scenario: a database cannot query an array."
FLASH = (
    "Over the measured interval, by the device’s own counters. Evicted: blocks of a cache per second. Moved: extents "
    "of a tier that changed places. Filled: the share in use at the end."
)


active = Template(
    "Active: data that the server read from its storage or wrote to it since the run began, counted once{how}; "
    "“at most” is an upper bound from the bytes moved. In a minute: the median over the measured interval. "
    "Marked: large enough for all active data."
)


ACTIVE_AT_MOST = (
    "The active data of a real array cannot be counted. The line is an upper bound: all bytes that the server read "
    "from its data files and wrote to them since the run began, but at most the size of the database. Data that were "
    "accessed twice count twice."
)


active_over_time = Template(
    "Distinct extents{of} that were read or written since the run began, by the device’s own count, warm-up "
    "included; thin: in the last full minute. Dotted lines are sizes of memory: values below a line fit into it."
)


def active_in_the_end(runs: Sequence[str]) -> str:
    return f"Active by the end of the run: {'; '.join(runs)}."


operator_question = Template("The operator was asked: {question} Answer: {answer}{after}.")


injected = Template("{names}. Service times were injected; no product was measured.")


# The wording of the laws that the figures of a step must obey: their names, their two sides, and if they agree.

LAWS: Mapping[Kind, tuple[str, str, str, str]] = {
    LawKind.USERS: (
        "Little’s law of the users",
        "users that were running",
        "transactions per second × (latency + think time)",
        "users",
    ),
    LawKind.READS: (
        "Little’s law of the reads",
        "reads per second × time of a read, by the server’s counters",
        "sessions sampled waiting for a read",
        "sessions",
    ),
    LawKind.DEVICE: (
        "Utilisation law of the {role:role}",
        "busy share of its spindles, by its own counters",
        "I/Os per second × service time ÷ spindles",
        "share of the time",
    ),
    LawKind.CPU: (
        "Utilisation law of the CPU",
        "cores busy, by the machine’s counters",
        "sessions sampled running or waiting for a CPU, and the driver’s CPU time",
        "cores",
    ),
    LawKind.WAITS: (
        "Little’s law of waiting for {part:part}",
        "time waited per second, by the server’s counters ({wait_types:joined})",
        "sessions sampled waiting for it",
        "sessions",
    ),
}
_ROLES = {"data": "data device", "wal": "log’s device"}
FORMATS: Mapping[str, Format] = {
    "at_most": _possible_gain,
    "name": _NAMES.__getitem__,
    "rests_on": lambda facts: _rests_on(**facts),
    "joined": ", ".join,
    "part": PART_NAMES.__getitem__,
    "role": _ROLES.__getitem__,
}


def law_words(law: Law) -> list[str]:
    """Return the name of a law, its two sides, and their unit."""
    return [Template(text, FORMATS)(**law.finding.facts) for text in LAWS[law.kind]]


def _sides(left: float, right: float) -> str:
    return f"Does not close: {number(left)} on one side, {number(right)} on the other."


def _open(left: float, right: float, few: float) -> str:
    return (
        f"It is unknown whether it closes: {number(left)} by the counters, which may be off by {percent(few)} because "
        f"their samples were few, and {number(right)} by samples of sessions."
    )


@says(LawKind.USERS)
def _(left: float, right: float, closed: bool) -> str:
    return "Transactions and the time between them account for all users." if closed else _sides(left, right)


@says(LawKind.READS)
def _(left: float, right: float, closed: bool | None, few: float | None) -> str:
    if few:
        return _open(left, right, few)
    if closed is None:
        return (
            f"Users account for {number(right)} of the {number(left)} reading sessions that the counters imply: other "
            "loads read too."
        )
    return (
        ("Samples of sessions and the server’s counters agree on the time of reads.") if closed else _sides(left, right)
    )


@says(LawKind.DEVICE)
def _(left: float, right: float, closed: bool | None, role: str) -> str:
    claim = f"I/Os × service times account for the busy time of the {_ROLES[role]}"
    if closed is None:
        return f"{claim} only roughly: sequential I/O is faster than the model’s read and write times."
    return f"{claim}." if closed else _sides(left, right)


@says(LawKind.CPU)
def _(left: float, right: float, closed: bool | None) -> str:
    if closed:
        return f"Sessions on a CPU and the driver account for the machine’s {number(left)} busy cores."
    if right > left:
        return (
            f"Sessions on a CPU or waiting for one, and the driver, would fill {number(right)} cores, but "
            f"{number(left)} were busy: the other sessions queued for a core, or were sampled as running although they "
            "were not."
        )
    return (
        f"{percent(1 - right / left)} of the {number(left)} busy cores were used neither by sessions nor by the "
        "driver, but by the kernel’s work for I/O, the server’s own processes, or other programs."
    )


@says(LawKind.WAITS)
def _(left: float, right: float, closed: bool | None, few: float | None, part: str, wait_types: list[str]) -> str:
    if few:
        return _open(left, right, few)
    both = f"{number(left)} by the counters, {number(right)} sampled"
    if closed is None:
        return (
            f"The server counted more waiting than the samples of users’ sessions show ({both}): its counters include "
            "its own tasks and other sessions."
        )
    if closed:
        return "The server’s counters and the samples of sessions agree on the time of waiting."
    return f"Does not close: samples of sessions show more waiting than the server counted ({both})."


MARKS: Mapping[Kind, str] = {
    DeviceKind.LIMITS: "device-bound",
    DeviceKind.LATENCY_LIMITS: "device-bound",
    DeviceKind.ABOVE_LIMITS: "bound above the device",
    DeviceKind.NOT_DIVIDED: "I/O or CPU, not separated",
    DeviceKind.NOT_LIMITING: "device not the bottleneck",
    DeviceKind.ONE_OF_SEVERAL: "device one limit of several",
    DeviceKind.WITH_CPUS: "device and CPUs limit together",
    DeviceKind.CPUS_LIMIT: "CPU-bound",
    DeviceKind.CPUS_BUSY_OTHERWISE: "CPUs busy with other work",
    DeviceKind.NOT_TOLD: "load does not test the device",
}

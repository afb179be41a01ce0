"""The wording of the verdict on a step's device: is it the bottleneck?"""

from collections.abc import Iterable, Mapping, Sequence

from stallmark.analysis.bottleneck.device_verdict import DeviceKind, JudgedDevice
from stallmark.analysis.finding import Kind
from stallmark.format import listed, percent
from stallmark.record.devices import DeviceLabel
from stallmark.report.text import says
from stallmark.report.text.templates import Format
from stallmark.stats.thresholds import DEVICE_OWN, LOCKS_SAID, LOG_SAID

EMULATED = "EMULATED"


def labelled(device: DeviceLabel) -> str:
    """Return the name of a device; that of an emulated one begins with EMULATED."""
    return f"{EMULATED} {device.name}" if device.emulated else device.name


def described(devices: Iterable[DeviceLabel]) -> str:
    """Return each device once, without EMULATED: for text that has said so."""
    return "; ".join(dict.fromkeys(device.name for device in devices if device.name))


_NAMES = {JudgedDevice.DATA: "device", JudgedDevice.LOG: "log’s device"}


SENTENCES: Mapping[Kind, str] = {
    DeviceKind.ABOVE_LIMITS: "Storage above the {device:name} is the bottleneck: {facts:rests_on}.",
    DeviceKind.NOT_DIVIDED: (
        "Whether storage is the bottleneck is not known: {facts:rests_on}. Beyond that, sessions in I/O waited above "
        "the device or for a CPU, and nothing tells which: how long sessions were at a CPU is not known."
    ),
    DeviceKind.LIMITS: "The {device:name} is the bottleneck: {facts:rests_on}.",
    DeviceKind.LATENCY_LIMITS: (
        "The latency of the {device:name}, rather than its queue, is the bottleneck: {facts:rests_on}."
    ),
    DeviceKind.NOT_LIMITING: "The {device:name} is not the bottleneck: {facts:rests_on}.",
    DeviceKind.ONE_OF_SEVERAL: "The {device:name} is one limit among several: {facts:rests_on}.",
    DeviceKind.WITH_CPUS: "The {device:name} and the CPUs are limits together: {facts:rests_on}. {cpu_share:at_most}",
    DeviceKind.CPUS_LIMIT: "The CPUs are the bottleneck: {facts:rests_on}. {cpu_share:at_most}",
    DeviceKind.CPUS_BUSY_OTHERWISE: (
        "The CPUs were mostly busy with other work, so whether the {device:name} is the bottleneck is not judged: "
        "{facts:rests_on}. The run accounts for {cpu_own_share:percent} of the CPUs."
    ),
}


@says(DeviceKind.NOT_TOLD)
def _(spent_in: str, share: float, cpu_share: float | None = None, cpu_own_share: float | None = None) -> str:
    idle = {"client": "in the client", "lock": "waiting for each other’s locks"}[spent_in]
    text = f"The load says nothing about the device: users spent {percent(share)} of their time {idle}"
    if cpu_share is None:
        return f"{text}."
    own = f", of which the run itself used {percent(cpu_own_share)}" if cpu_own_share is not None else ""
    return f"{text}, and the CPUs of the server’s machine were {percent(cpu_share)} busy{own}."


def _at_most(cpu_share: float) -> str:
    more = f"{percent(1 / cpu_share - 1)} more at most" if cpu_share < 1 else "no more"
    return f"Faster storage alone could give {more}."


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


FORMATS: Mapping[str, Format] = {
    "at_most": _at_most,
    "name": _NAMES.__getitem__,
    "rests_on": lambda facts: _rests_on(**facts),
}


# How to read the tables of arrays, and the chart of what was active. ------------------------------------------

DESCRIBED_ARRAY = "As the scenario says: nobody can ask an array from a database."
FLASH = (
    "Over the measured interval, by the device’s own counters. Evicted: blocks of a cache per second. Moved: "
    "extents of a tier that changed places. Filled: at the end."
)


def active(how: str) -> str:
    """Return how to read the table of active sets; `how` says in which extents they were counted."""
    return (
        f"Active: what the server read from its storage or wrote to it, each place once{how}, from the beginning of "
        "the run; at most: nobody counted, and more bytes were not moved. In a minute: the median over the measured "
        "interval. Marked: it holds all that was active."
    )


ACTIVE_AT_MOST = (
    "Nobody counts what is active on a real array. The line is a bound: all that the server read from its data "
    "files and wrote to them since the run began, and no more than the database; what was touched twice is in it "
    "twice."
)


def active_over_time(of: str) -> str:
    """Return how the active set was counted; `of` names the size of its extents."""
    return (
        f"Different extents{of} that were read or written since the run began, by the device’s own count, warm-up "
        "included; thin: in the last full minute. What lies below a dotted line fits into it."
    )


def active_in_the_end(runs: Sequence[str]) -> str:
    return f"Active by the end of the run: {'; '.join(runs)}."


def asked(question: str, answer: str | None, after: str) -> str:
    return f"The operator was asked: {question} Answer: {answer}{after}."


def injected(names: str) -> str:
    """Return the line below figures of these emulated arrays."""
    return f"{names}. Service times were injected; no product was measured."

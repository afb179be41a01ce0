"""StorageIO for Seagate, 2014: a bank and a brokerage on one device of five, by 1 to 100 users."""

from collections.abc import Mapping, Sequence

from benchmarks.published.chart import Claim, Figures, Run, lines, rising

from stallmark.analysis.loads import summarise_loads
from stallmark.record.reader import Record

RUNS = {
    "bank": Run(
        "device-ramp-emulated",
        (
            "loads={bank: {workload: bank, scale: {branches: 10}, users: [1, 20, 50, 100]}}",
            "buffer_pool=10 %",
            "warm_up=22s",
            "measure=12s",
        ),
    ),
    "brokerage": Run(
        "device-ramp-emulated",
        (
            "loads={brokerage: {workload: brokerage, scale: {customers: 4000, days: 40}, users: [10, 20, 50, 100]}}",
            "buffer_pool=10 %",
            "warm_up=10s",
            "measure=40s",
        ),
    ),
}
LOADS = tuple(RUNS)
SSD, SSHD, FAST_DISK, *SLOW_DISKS = DEVICES = (
    "12 Gb/s SSD", "SSHD", "15K disk", "7.2K disk, 6 TB", "7.2K disk, 3 TB",
)  # fmt: skip
SATURATED = 1.25
"""Times as much that more users bring at most, once a device is saturated."""
_SSHD = {
    "bank": (
        "the SSHD turns at 10,000 rpm. Its flash, warm, answers a fifth of the reads, and half of the I/Os are writes, "
        "of which it takes none here. What theirs takes was not published"
    ),
    "brokerage": (
        "the SSHD turns at 10,000 rpm, and its flash starts empty: it fills with what is read, 150 pages a second. "
        "Theirs ran for hours"
    ),
}


def claims(records: Mapping[str, Sequence[Record]]) -> list[Claim]:
    figures = _figures(records)
    return [claim for load in LOADS for claim in _claims(load, figures)]


def _claims(load: str, figures: Mapping[tuple[str, str, int], Figures]) -> list[Claim]:
    users = sorted({key[2] for key in figures if key[0] == load})
    rates = {device: [figures[load, device, count].rate for count in users] for device in DEVICES}
    ssd, disk = figures[load, SSD, users[-1]], figures[load, FAST_DISK, users[-1]]
    ordered = [rising((max(slow), fast, sshd, ssd)) for ssd, sshd, fast, *slow in zip(*rates.values(), strict=True)]
    better = all(
        figures[load, SSD, count].rate > figures[load, device, count].rate
        and figures[load, SSD, count].mean_ms < figures[load, device, count].mean_ms
        for count in users for device in DEVICES[1:]
    )  # fmt: skip
    enough = {
        device: next(count for count, rate in zip(users, same, strict=True) if rate * SATURATED > max(same))
        for device, same in rates.items()
    }
    slow = [figures[load, device, users[-1]].rate for device in SLOW_DISKS]
    return [
        Claim(
            f"{load}: SSD, SSHD, 15K, 7.2K in this order, with any number of users", "the order of its title",
            ", ".join(f"{rates[device][-1]:.1f}" for device in DEVICES) + f" with {users[-1]}", all(ordered),
            _SSHD[load],
        ),
        Claim(
            f"{load}: the SSD does more, at lower latency, with any number of users", "yes",
            f"{ssd.rate:.0f}/s at {ssd.mean_ms:.0f} ms, 15K {disk.rate:.1f}/s at {disk.mean_ms:.0f} ms", better,
            "users are limited by something else than the device",
        ),
        Claim(
            f"{load}: users from which a device does no more", "shown for each step, which are not at hand",
            ", ".join(f"{device} {count}" for device, count in enough.items()), None,
            "a disk takes I/Os in their order here, so more of them bring nothing; the SSD's limit are two cores",
        ),
        Claim(
            f"{load}: the disk of 6 TB does more than that of 3 TB", "yes", f"{slow[0]:.1f}, {slow[1]:.1f} per s", None,
            "142 GB were 2.4 % and 4.7 % of these disks, whose heads hardly moved; those here seek over a whole disk",
        ),
    ]  # fmt: skip


def chart(records: Mapping[str, Sequence[Record]]) -> str:
    figures = _figures(records)
    users = sorted({key[2] for key in figures if key[0] == "brokerage"})
    series = {device: [figures["brokerage", device, count].rate for count in users] for device in DEVICES}
    return lines("Brokerage: transactions per second by users", "TPS", [str(count) for count in users], series)


def _figures(records: Mapping[str, Sequence[Record]]) -> dict[tuple[str, str, int], Figures]:
    """Return the figures of all transactions, as few are of one type, by load, device and users."""
    return {
        (load, step.variant, step.users): Figures.of_step(step)
        for load in LOADS
        for step in summarise_loads(records[load]).loads[load].steps
    }

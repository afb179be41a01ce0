"""StorageIO for Seagate, 2014: a bank and a brokerage on one device of five, by 1 to 100 users."""

from collections.abc import Mapping, Sequence

from benchmarks.published.chart import lines
from benchmarks.published.claims import Claim, Figures, Run, rising

from stallmark.analysis.loads.summary import summarise_loads
from stallmark.record.reader import Record

RUNS = {
    "bank": Run(
        "device-ramp-emulated",
        (
            "loads={bank: {workload: bank, scale: {branches: 100}, users: [1, 20, 50, 100]}}",
            "buffer_pool=10 %",
            "warm_up=4s",
            "measure=15s",
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
"""Times as much as from 20 users that a device does with 100 at most, if 20 saturate it."""


def claims(records: Mapping[str, Sequence[Record]]) -> list[Claim]:
    figures = _figures(records)
    return [claim for load in LOADS for claim in _claims(load, figures)]


def _claims(load: str, figures: Mapping[tuple[str, str, int], Figures]) -> list[Claim]:
    users = sorted({key[2] for key in figures if key[0] == load})
    most = users[-1]
    at_most = {device: figures[load, device, most] for device in DEVICES}
    slow = [at_most[device].rate for device in SLOW_DISKS]
    ssd, disk = at_most[SSD], at_most[FAST_DISK]
    better = all(
        figures[load, SSD, count].rate > figures[load, device, count].rate
        and figures[load, SSD, count].mean_ms < figures[load, device, count].mean_ms
        for count in users for device in DEVICES[1:]
    )  # fmt: skip
    more = {device: figures[load, device, most].rate / figures[load, device, 20].rate for device in DEVICES}
    longer = {device: figures[load, device, most].mean_ms / figures[load, device, 20].mean_ms for device in DEVICES}
    return [
        Claim(
            f"{load}, {most} users: SSD, SSHD, 15K, 7.2K in this order", "yes",
            " > ".join(f"{at_most[device].rate:.0f}" for device in DEVICES),
            rising((max(slow), disk.rate, at_most[SSHD].rate, ssd.rate)),
            "the SSHD turns at 10,000 rpm, its flash holds a fifth of the data, and writes go past it",
        ),
        Claim(
            f"{load}: the SSD does more, at lower latency, with any number of users", "yes",
            f"{ssd.rate:.0f}/s at {ssd.mean_ms:.0f} ms, 15K {disk.rate:.0f}/s at {disk.mean_ms:.0f} ms", better,
            "users are limited by something else than the device",
        ),
        Claim(
            f"{load}: disks are saturated by 20 users, the SSD is not", "yes",
            ", ".join(f"{device} {more[device]:.2f} ×" for device in (SSD, FAST_DISK, *SLOW_DISKS)) + " from 20 to 100",
            max(more[device] for device in (FAST_DISK, *SLOW_DISKS)) < SATURATED < more[SSD],
            "with the SSD two cores are the limit, which users, server and storage share",
        ),
        Claim(
            f"{load}: beyond that, users add latency alone on a disk", "yes",
            ", ".join(f"{longer[device]:.1f} ×" for device in (FAST_DISK, *SLOW_DISKS)) + " the time for 5 × the users",
            min(longer[device] for device in (FAST_DISK, *SLOW_DISKS)) > 5 / SATURATED / SATURATED,
            "a transaction that began before a step was measured counts in it",
        ),
        Claim(
            f"{load}: the disk of 6 TB does more than that of 3 TB", "yes", f"{slow[0]:.1f}, {slow[1]:.1f} per s", None,
            "their data sheets differ in the rate of reads in order alone, and these read at random",
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

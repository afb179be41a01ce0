"""StorageIO for Seagate, 2014: a bank and a brokerage on one device of five, by 1 to 100 users."""

from collections.abc import Mapping, Sequence

from benchmarks.published.chart import lines
from benchmarks.published.claims import Claim

from stallmark.analysis.loads.summary import summarise_loads
from stallmark.record.reader import Record

SCENARIO, SETTINGS = "device-ramp-emulated", ()
BEST_FIRST = ("12 Gb/s SSD", "SSHD", "15K disk", "7.2K disk, 6 TB", "7.2K disk, 3 TB")
Rates = Mapping[tuple[str, str, int], tuple[float | None, float | None]]
"""Transactions per second and their mean ms by load, device and users."""


def claims(records: Sequence[Record]) -> list[Claim]:
    figures = _figures(records)
    made = []
    for load in ("bank", "brokerage"):
        users = sorted({key[2] for key in figures if key[0] == load})
        most = users[-1]
        rates = [figures[load, device, most][0] or 0.0 for device in BEST_FIRST]
        order = rates[0] > rates[1] > rates[2] > max(rates[3:])
        better = all(
            (figures[load, "12 Gb/s SSD", count][0] or 0) > (figures[load, device, count][0] or 0)
            and (figures[load, "12 Gb/s SSD", count][1] or 0) < (figures[load, device, count][1] or 0)
            for count in users for device in BEST_FIRST[1:]
        )  # fmt: skip
        made += [
            Claim(
                f"{load}, {most} users: SSD > SSHD > 15K > 7.2K", "yes", " > ".join(f"{rate:.0f}" for rate in rates[:4]), order,
                "the SSHD's flash holds a fifth of the data, and writes go past it",
            ),
            Claim(
                f"{load}: the SSD does more at lower latency in every step", "yes", _at(figures, load, users), better, "",
            ),
            Claim(
                f"{load}: the two disks of 7.2K differ", "yes", f"{rates[3]:.1f} and {rates[4]:.1f}", None,
                "they have the same speed and seek, and the emulator knows no recording density",
            ),
            Claim(
                f"{load}: disks gain little from 20 users on", "yes", _gain(figures, load, users), _saturated(figures, load, users), "",
            ),
        ]  # fmt: skip
    return made


def chart(records: Sequence[Record]) -> str:
    figures = _figures(records)
    users = sorted({key[2] for key in figures if key[0] == "brokerage"})
    series = {device: [figures["brokerage", device, count][0] for count in users] for device in BEST_FIRST}
    return lines("Brokerage: transactions per second by users", "TPS", [str(count) for count in users], series)


def _figures(records: Sequence[Record]) -> Rates:
    points = summarise_loads(records).points
    return {
        (point.first.load, point.first.variant, point.first.count): (point.rate, point.mean(lambda one: one.mean_ms))
        for point in points
    }


def _at(figures: Rates, load: str, users: Sequence[int]) -> str:
    rate, ms = figures[load, "12 Gb/s SSD", users[-1]]
    other, slower = figures[load, "15K disk", users[-1]]
    return f"{rate:.0f}/s of {ms:.0f} ms against {other:.1f}/s of {slower:.0f} ms (15K) at {users[-1]} users"


def _gain(figures: Rates, load: str, users: Sequence[int]) -> str:
    rates = [figures[load, "15K disk", count][0] or 0.0 for count in users]
    return ", ".join(f"{rate:.0f}" for rate in rates) + f" per s with {', '.join(map(str, users))} users (15K)"


def _saturated(figures: Rates, load: str, users: Sequence[int]) -> bool:
    return all(
        (figures[load, device, users[-1]][0] or 0) < 2 * (figures[load, device, users[1]][0] or 0)
        for device in BEST_FIRST[2:]
    )

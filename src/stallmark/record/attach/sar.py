"""Files of sar as `sadf -j` writes them, with any of its activities (`sadf -j file -- -d`).

Times are UTC unless sadf was run with -T or -t. Newer versions name the zone ("tz"), older ones say whether it is UTC
("utc": 1). A kB is 1,024 bytes. A time stands at the end of its interval.
"""

from collections.abc import Iterator
from datetime import UTC
from typing import Any

from stallmark.errors import StallmarkError
from stallmark.record.attach import sysstat
from stallmark.record.attach.measurements import Columns, Kept, Measurements, Wanted

_UNITS = {
    "disk tps": "1/s", "disk rkB": "KiB/s", "disk wkB": "KiB/s", "disk dkB": "KiB/s", "disk await": "ms",
    "disk areq-sz": "KiB", "disk util-percent": "%", "io tps": "1/s", "io io-reads rtps": "1/s",
    "io io-writes wtps": "1/s",
}  # fmt: skip
_SINCE_START = 10**8  # seconds, more than three years: what older versions write for an interval they do not know


def read(wanted: Wanted, kept: Kept) -> Measurements:
    stamps: list[str] = []
    columns, names = Columns(kept), []
    zones = set()
    for sample in sysstat.samples(wanted):
        when = sample.get("timestamp")
        if not isinstance(when, dict) or not (when.get("date") and when.get("time")):
            continue  # a restart or a comment
        if not isinstance(seconds := when.get("interval") or 0, int | float) or seconds > _SINCE_START:
            continue
        zones.add(str(when.get("tz") or ("UTC" if when.get("utc") else "")))
        stamps.append(f"{when['date']} {when['time']}")
        for counter, instance, value in _flat(sample):
            label = f"{instance} {counter}".strip()
            names.append(label) if len(stamps) == 1 else None
            if wanted.has(label):
                unit = _UNITS.get(counter, "%" if counter.startswith("cpu-load") else "")
                columns.add(len(stamps) - 1, counter, instance, unit, value)
    wanted.refuse_nothing(bool(columns), names)
    if len(zones) > 1:
        raise StallmarkError(f"{wanted.file} mixes times of {' and '.join(sorted(zones))}: write it anew.")
    zone = zones.pop()
    return Measurements(stamps, columns.series(), UTC if zone == "UTC" else None, zone, sysstat.host(wanted))


def _flat(node: dict[str, Any], *path: str) -> Iterator[tuple[str, str, float]]:
    """Yield counter, instance and value of every number. In an array the first member of each object names the
    instance: {"disk-device": "sda", "tps": …}."""
    for key, value in node.items():
        if key == "timestamp":
            continue
        if isinstance(value, dict):
            yield from _flat(value, *path, key)
        elif isinstance(value, list):
            for one in value:
                if isinstance(one, dict) and one:
                    (_, name), *rest = one.items()
                    yield from ((c, str(name), v) for c, _, v in _flat(dict(rest), *path, key))
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield " ".join((*path, key)), "", float(value)

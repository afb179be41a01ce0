"""Linux devices as `iostat -x -t -o JSON` reports them.

Times are local ones of the machine, in the style of its locale, or ISO 8601 with S_TIME_FORMAT=ISO; the offset is only
in the latter. The first report covers all the time since the machine was started, unless -y leaves it out. The file
does not say which, so the first is never taken. A kB is 1,024 bytes. A time stands at the end of its interval. Two
faults of sysstat: a counter that wrapped is written as 2^63 (issue 312), and wMB/s is wrong in the JSON of some
versions (issue 264).
Leave -m out.
"""

from stallmark.errors import StallmarkError
from stallmark.record.attach import sysstat
from stallmark.record.attach.measurements import Columns, Kept, Measurements, Wanted

_UNITS = {
    "rkB/s": "KiB/s", "wkB/s": "KiB/s", "dkB/s": "KiB/s", "kB_read/s": "KiB/s", "kB_wrtn/s": "KiB/s",
    "rMB/s": "MiB/s", "wMB/s": "MiB/s", "dMB/s": "MiB/s", "MB_read/s": "MiB/s", "MB_wrtn/s": "MiB/s",
    "r_await": "ms", "w_await": "ms", "d_await": "ms", "f_await": "ms", "await": "ms", "svctm": "ms",
    "rareq-sz": "KiB", "wareq-sz": "KiB", "dareq-sz": "KiB",
    "rrqm": "%", "wrqm": "%", "drqm": "%", "util": "%", "tps": "1/s",
}  # fmt: skip
_WRAPPED = 2.0**50  # kibibytes or requests per second: beyond any device
_UNTIMED = "{} has no times: run iostat with -t, as in `iostat -x -t -o JSON 1`."


def read(wanted: Wanted, kept: Kept) -> Measurements:
    stamps: list[str] = []
    columns, names = Columns(kept), []
    for number, sample in enumerate(sysstat.samples(wanted)):
        if not isinstance(sample.get("timestamp"), str):
            raise StallmarkError(_UNTIMED.format(wanted.file))
        if number == 0:
            continue
        stamps.append(sample["timestamp"])
        for disk in sample.get("disk") or []:
            device = str(disk.get("disk_device", ""))
            for key, value in disk.items():
                if not isinstance(value, int | float) or value > _WRAPPED:
                    continue
                names.append(f"{device} {key}") if len(stamps) == 1 else None
                if wanted.has(f"{device} {key}"):
                    unit = _UNITS.get(key, "1/s" if key.endswith("/s") else "")
                    columns.add(len(stamps) - 1, key, device, unit, float(value))
    wanted.refuse_nothing(bool(columns), names)
    left_out = "the first report, which may cover the time since the machine was started"
    return Measurements(stamps, columns.series(), host=sysstat.host(wanted), notes=[left_out])

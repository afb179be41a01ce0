"""Files as Perfmon, iostat, sar and Prometheus would have written them, made from counters that are known."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

IO = ("reads", "read_bytes", "read_stall_ms", "writes", "write_bytes", "write_stall_ms")


@dataclass(frozen=True)
class Moment:
    """The cumulative counters of every device at one time: by device in the order of IO. `cpu_s`: of all cores."""

    at: float
    devices: dict[str, tuple[float, ...]]
    cpu_s: float = 0.0
    batches: float = 0.0


def rates(before: Moment, after: Moment, device: str) -> dict[str, float]:
    """Return the rates per second of a device between two moments, by name."""
    seconds = after.at - before.at
    return {
        name: (last - first) / seconds
        for name, first, last in zip(IO, before.devices[device], after.devices[device], strict=True)
    }


def mean(rate: dict[str, float], side: str) -> float:
    return rate[f"{side}_stall_ms"] / rate[f"{side}s"] if rate[f"{side}s"] else 0.0


def iostat_text(moments: Sequence[Moment], cores: int = 2, zeros: bool = True, times: bool = True) -> str:
    """Return what `S_TIME_FORMAT=ISO iostat -xt` prints; without `zeros` what it prints with -z, without `times` what
    it prints without -t."""
    lines = [f"Linux 6.1.0-30-amd64 (sql01) \t2026-03-02 \t_x86_64_\t({cores} CPU)", ""]
    for place, moment in enumerate(moments):
        before = moments[place - 1] if place else Moment(moment.at - 86400, dict.fromkeys(moment.devices, (0.0,) * 6))
        busy = 100 * (moment.cpu_s - before.cpu_s) / (moment.at - before.at) / cores
        lines += [f"{datetime.fromtimestamp(moment.at, UTC):%Y-%m-%dT%H:%M:%S+0000}"] * times
        lines += ["avg-cpu:  %user   %nice %system %iowait  %steal   %idle"]
        lines += [f"          {busy:.2f}    0.00    0.00    0.00    0.00   {100 - busy:.2f}", ""]
        lines += ["Device            r/s     rkB/s r_await     w/s     wkB/s w_await  aqu-sz  %util"]
        for name in moment.devices:
            rate = rates(before, moment, name)
            if zeros or rate["reads"] or rate["writes"]:
                lines.append(
                    f"{name:10} {rate['reads']:.2f} {rate['read_bytes'] / 1024:.2f} {mean(rate, 'read'):.2f} "
                    f"{rate['writes']:.2f} {rate['write_bytes'] / 1024:.2f} {mean(rate, 'write'):.2f} 0.10 1.00"
                )
        lines += ["", ""]
    return "\n".join(lines)


def iostat_json(moments: Sequence[Moment], cores: int = 2) -> str:
    """Return what `S_TIME_FORMAT=ISO iostat -xdt -o JSON` prints."""
    samples = []
    for before, after in zip([None, *moments[:-1]], moments, strict=True):
        before = before or Moment(after.at - 86400, dict.fromkeys(after.devices, (0.0,) * 6))
        disks = []
        for name in after.devices:
            rate = rates(before, after, name)
            disks.append(
                {
                    "disk_device": name, "r/s": round(rate["reads"], 2), "w/s": round(rate["writes"], 2),
                    "rkB/s": round(rate["read_bytes"] / 1024, 2), "wkB/s": round(rate["write_bytes"] / 1024, 2),
                    "r_await": round(mean(rate, "read"), 2), "w_await": round(mean(rate, "write"), 2),
                }
            )  # fmt: skip
        samples.append({"timestamp": f"{datetime.fromtimestamp(after.at, UTC):%Y-%m-%dT%H:%M:%S+0000}", "disk": disks})
    host = {"nodename": "sql01", "number-of-cpus": cores, "statistics": samples}
    return json.dumps({"sysstat": {"hosts": [host]}}, indent=1)


def sadf(samples: Sequence[dict], cores: int = 2) -> str:
    """Return what `sadf -j FILE` prints of these samples."""
    host = {"nodename": "sql01", "number-of-cpus": cores, "file-date": "2026-03-02", "statistics": list(samples)}
    return json.dumps({"sysstat": {"hosts": [host]}})


def sadf_json(moments: Sequence[Moment], cores: int = 2) -> str:
    """Return what `sadf -j FILE -- -d -p` prints."""
    samples = []
    for before, after in pairwise(moments):
        when = f"{datetime.fromtimestamp(after.at, UTC):%Y-%m-%d %H:%M:%S}".split()
        disks = []
        for name in after.devices:
            rate = rates(before, after, name)
            kib = {side: round(rate[f"{side}_bytes"] / 1024, 2) for side in ("read", "write")}
            ios = round(rate["reads"] + rate["writes"], 2)
            disks.append({"disk-device": name, "tps": ios, "rkB": kib["read"], "wkB": kib["write"], "await": 0.3})
        stamp = {"date": when[0], "time": when[1], "utc": 1, "interval": round(after.at - before.at)}
        samples.append({"timestamp": stamp, "disk": disks})
    return sadf(samples, cores)


def perfmon_csv(moments: Sequence[Moment], cores: int = 2, host: str = "SQL01", instance: str = "SQLServer") -> str:
    """Return what Performance Monitor writes: the first values of rates are blank."""
    disk = r"\\{}\LogicalDisk({})\{}"
    counters = (
        ("Disk Reads/sec", "reads", 1.0), ("Disk Read Bytes/sec", "read_bytes", 1.0),
        ("Disk Writes/sec", "writes", 1.0), ("Disk Write Bytes/sec", "write_bytes", 1.0),
    )  # fmt: skip
    devices = list(moments[0].devices)
    header = ["(PDH-CSV 4.0) (Coordinated Universal Time)(0)"]
    for name in devices:
        header += [disk.format(host, name, counter) for counter, _, _ in counters]
        header += [disk.format(host, name, f"Avg. Disk sec/{side}") for side in ("Read", "Write")]
    header += [rf"\\{host}\Processor({core})\% Processor Time" for core in (*range(cores), "_Total")]
    header += [rf"\\{host}\{instance}:SQL Statistics\Batch Requests/sec"]
    header += [rf"\\{host}\{instance}:Buffer Manager\Page life expectancy"]
    lines = [header]
    for before, after in zip([None, *moments[:-1]], moments, strict=True):
        row = [datetime.fromtimestamp(after.at, UTC).strftime("%m/%d/%Y %H:%M:%S.%f")[:-3]]
        if before is None:
            row += [" "] * (len(header) - 2) + ["300"]
        else:
            for name in devices:
                rate = rates(before, after, name)
                row += [f"{rate[column] * factor:.15g}" for _, column, factor in counters]
                row += [f"{mean(rate, side) / 1000:.15g}" for side in ("read", "write")]
            seconds = after.at - before.at
            busy = 100 * (after.cpu_s - before.cpu_s) / seconds / cores
            row += [f"{busy:.15g}"] * (cores + 1) + [f"{(after.batches - before.batches) / seconds:.15g}", "300"]
        lines.append(row)
    return "\r\n".join(",".join(f'"{cell}"' for cell in row) for row in lines) + "\r\n"


NODE = {
    "reads": ("node_disk_reads_completed_total", 1), "read_bytes": ("node_disk_read_bytes_total", 1),
    "read_stall_ms": ("node_disk_read_time_seconds_total", 1000), "writes": ("node_disk_writes_completed_total", 1),
    "write_bytes": ("node_disk_written_bytes_total", 1), "write_stall_ms": ("node_disk_write_time_seconds_total", 1000),
}  # fmt: skip


def prometheus_json(moments: Sequence[Moment]) -> str:
    """Return the answer of /api/v1/query_range for {__name__=~"node_.*|windows_mssql.*"}."""
    result = []
    for name in moments[0].devices:
        for place, column in enumerate(IO):
            metric, factor = NODE[column]
            labels = {"__name__": metric, "device": name, "instance": "sql01:9100", "job": "node"}
            points = [[one.at, repr(one.devices[name][place] / factor)] for one in moments]
            result.append({"metric": labels, "values": points})
    for mode in ("user", "idle"):
        labels = {"__name__": "node_cpu_seconds_total", "cpu": "0", "mode": mode, "instance": "sql01:9100"}
        points = [[one.at, repr(one.cpu_s if mode == "user" else one.at / 2)] for one in moments]
        result.append({"metric": labels, "values": points})
    labels = {"__name__": "windows_mssql_sqlstats_batch_requests", "instance": "sql01:9182"}
    result.append({"metric": labels, "values": [[one.at, repr(one.batches)] for one in moments]})
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def prometheus_series(count: int) -> str:
    """Return an answer of so many series, of a point each."""
    result = [{"metric": {"__name__": "a", "device": str(n)}, "values": [[1772445600, "1"]]} for n in range(count)]
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})


def open_csv(moments: Sequence[Moment]) -> str:
    """Return a CSV of rates by our names, with the means of the disks together."""
    header = ["Time", "reads_per_s", "read_bytes_per_s", "read_ms", "writes_per_s", "write_bytes_per_s", "write_ms"]
    lines = [",".join([*header, "cpu_s_per_s", "batches_per_s"])]
    for before, after in zip([moments[0], *moments[:-1]], moments, strict=True):
        seconds = after.at - before.at or 1.0
        rise = [
            sum(after.devices[name][place] - before.devices[name][place] for name in after.devices)
            for place in range(len(IO))
        ]
        cells = []
        for ios, size, stall in (rise[:3], rise[3:]):
            cells += [ios / seconds, size / seconds, stall / ios if ios else 0.0]
        cells += [(after.cpu_s - before.cpu_s) / seconds, (after.batches - before.batches) / seconds]
        lines.append(",".join([f"{datetime.fromtimestamp(after.at, UTC):%Y-%m-%dT%H:%M:%SZ}", *map(repr, cells)]))
    return "\n".join(lines) + "\n"

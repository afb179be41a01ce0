"""The command line by which `fio` makes the I/O of one cell of a raw load, until it is told to stop."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from stallmark.record.manifest.loads import RawPlan
from stallmark.storage.probe.fio import SKIP_BYTES, escaped, part_bytes

REPORT_EVERY_S = 1
_FOR_EVER = f"{30 * 86400}s"
_LEAST_RATE = 8
"""I/Os per second of a thread. fio reports when each of its threads has ended an I/O, so none should sleep for long."""


def command(program: str, how: str, file: Path, plan: RawPlan, blocks: Mapping[int, float], seed: int) -> list[str]:
    """Return the command line. `how` is the I/O engine, as for a probe: `psync` needs a thread for each I/O under way,
    others one thread for all random ones. `blocks` are those of the plan, without any below the sector.

    I/Os that arrive at a rate do so at random (a Poisson process), and late ones are made up for. Their latency is from
    issuing, as all: the time that one waited because too many were under way is not in it.
    """
    random = plan.order == "random"
    threads = _threads(plan, how)
    parts = 1 if random else threads
    length = part_bytes(plan.size_bytes, parts, max(blocks))
    return [
        program,
        f"--filename={escaped(file)}",
        f"--offset={SKIP_BYTES}",
        f"--size={length}",
        *([f"--offset_increment={length}"] if parts > 1 else []),
        f"--rw={'rand' * random}{plan.operation}",
        f"--bs={next(iter(blocks))}" if len(blocks) == 1 else f"--bssplit={_split(blocks)}",
        f"--ioengine={how}",
        "--direct=1",
        "--thread=1",
        f"--iodepth={max(1, plan.outstanding // threads)}",
        "--group_reporting=1",
        "--lat_percentiles=1",
        "--clat_percentiles=0",
        "--time_based=1",
        f"--runtime={_FOR_EVER}",
        "--norandommap=1",
        "--randrepeat=1",
        f"--randseed={seed}",
        # The file is ours, and whole: fio shall neither lay one out, nor extend, nor remove it.
        "--overwrite=1",
        "--fallocate=none",
        "--allow_file_create=0",
        "--invalidate=0",
        *(["--refill_buffers=1", "--buffer_compress_percentage=50", "--buffer_compress_chunk=4096"]
          if plan.operation == "write" else []),
        f"--status-interval={REPORT_EVERY_S}",
        "--eta=never",
        "--output-format=json+",
        *_jobs(plan, threads),
    ]  # fmt: skip


def _threads(plan: RawPlan, how: str) -> int:
    if plan.order == "sequential":
        return plan.outstanding
    if how != "psync":
        return 1
    if plan.rate_iops:
        return max(1, min(plan.outstanding, int(plan.rate_iops) // _LEAST_RATE))
    return plan.outstanding


def _jobs(plan: RawPlan, threads: int) -> Iterator[str]:
    """Yield the threads, and the share of the rate that each has: fio's rates are whole numbers."""
    if plan.rate_iops:
        each, more = divmod(int(plan.rate_iops), threads)
        for name, count, rate in (("raw", threads - more, each), ("more", more, each + 1)):
            if count:
                yield from (f"--name={name}", f"--numjobs={count}", "--rate_process=poisson", f"--rate_iops={rate}")
        return
    yield from ("--name=raw", f"--numjobs={threads}")
    if plan.rate_bytes:
        yield f"--rate={round(plan.rate_bytes / threads)}"


def _split(blocks: Mapping[int, float]) -> str:
    return ":".join(f"{size}/{round(share * 100)}" for size, share in sorted(blocks.items()))

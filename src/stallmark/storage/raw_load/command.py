"""The command line by which `fio` makes the I/O of one cell of a raw load, until it is told to stop.

I/Os that arrive at a rate are not its work (arrivals.py).
"""

from collections.abc import Mapping
from pathlib import Path

from stallmark.record.manifest.loads import RawPlan
from stallmark.storage.probe.fio import SKIP_BYTES, escaped, part_bytes

REPORT_EVERY_S = 1
_FOR_EVER = f"{30 * 86400}s"


def command(program: str, how: str, file: Path, plan: RawPlan, blocks: Mapping[int, float], seed: int) -> list[str]:
    """Return the command line. `how` is the I/O engine, as for a probe: `psync` needs a thread for each I/O under way,
    others one thread for all random ones. `blocks` are those of the plan, without any below the sector.
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
        "--name=raw",
        f"--numjobs={threads}",
        *([f"--rate={round(plan.rate_bytes / threads)}"] if plan.rate_bytes else []),
    ]  # fmt: skip


def _threads(plan: RawPlan, how: str) -> int:
    return plan.outstanding if plan.order == "sequential" or how == "psync" else 1


def _split(blocks: Mapping[int, float]) -> str:
    return ":".join(f"{size}/{round(share * 100)}" for size, share in sorted(blocks.items()))

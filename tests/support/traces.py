"""A trace of I/Os beside a synthetic record, whose pages are those given."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from stallmark.collectors.postgres.io_trace import IoFiles, IoTrace
from stallmark.record.schema import SAMPLED, TRANSACTION_IO
from support.synthetic import Brokerage, Truth, make_run
from support.tables import put

PAGE, MIB = 8192, 1 << 20
READ, WRITE, SYNC = range(3)
FILES = (
    (101, "brokerage.trade", "brokerage.trade", "table", 96 * MIB),
    (102, "brokerage.trade_pkey", "brokerage.trade", "index", 32 * MIB),
    (103, "brokerage.daily_market", "brokerage.daily_market", "table", 192 * MIB),
)
"""Number, relation, table, kind and size of the files of a database of 320 MiB, as the synthetic records have."""
TRUTH = Truth(
    tps=100, noise=0.0, brokerage=Brokerage(nominal_rate=9.87), reads_per_transaction=30, requests_per_transaction=60,
    emulated=False, device={"name": "sdb"},
)  # fmt: skip


def put_trace(
    folder: Path, seconds: np.ndarray, files: np.ndarray, pages: np.ndarray, *, count=1, op=READ, lost=0, pid=1
) -> Path:
    """Add a trace in which each I/O has `count` pages. Files are places in FILES."""
    size = len(seconds)
    inodes = np.array([file[0] for file in FILES] + [999])
    put(
        folder,
        "io_trace",
        pa.table(
            {
                "t": pa.array(np.full(size, 1.0)),
                "took_s": pa.array(np.full(size, 0.001), pa.float32()),
                "begun_us": pa.array((np.asarray(seconds) * 1e6).astype("i8")),
                "took_us": pa.array(np.full(size, 90), pa.int32()),
                "file": pa.array(inodes[files].astype("i8")),
                "offset": pa.array(np.asarray(pages).astype("i8") * PAGE),
                "bytes": pa.array(np.broadcast_to(np.asarray(count) * PAGE, size).astype("i4")),
                "pid": pa.array(np.broadcast_to(pid, size).astype("i4")),
                "op": pa.array(np.broadcast_to(op, size).astype("i1")),
                "lost": pa.array(np.r_[lost, np.zeros(max(size - 1, 0))][:size].astype("i4")),
            },
            schema=pa.schema([*SAMPLED, *IoTrace.columns]),
        ),
    )
    rows = [dict(zip(("file", "relation", "table", "kind", "size_bytes"), file, strict=True)) for file in FILES]
    schema = pa.schema([*SAMPLED, *IoFiles.columns])
    put(
        folder,
        "io_files",
        pa.Table.from_pylist([{"t": 1.0, "took_s": 0.1, "segment": 0} | row for row in rows], schema),
    )
    return folder


def put_samples(folder: Path, **sampled: int) -> Path:
    """Add so many transactions of each type that were looked at, each with 30 reads."""
    rows = [
        {"second": 10, "load": "brokerage", "transaction": name, "sampled": count, "reads": 30 * count}
        | {"read_bytes": 30 * PAGE * count, "hits": 90 * count, "read_us": 3000 * count, "writes": 0}
        for name, count in sampled.items()
    ]
    return put(folder, "transaction_io", pa.Table.from_pylist(rows, TRANSACTION_IO))


def make_traced(folder: Path, reads: int = 90_000, share: float = 0.02, **truth) -> Path:
    """Write a run of the brokerage with a pool of this share, and a trace of a load with a hot end."""
    pool = round(share * 320 * MIB)
    made = make_run(folder, replace(TRUTH, pool_bytes=pool, variant=f"pool {share:.0%}", **truth))
    chance = np.random.default_rng(1)
    seconds = np.sort(chance.uniform(0, TRUTH.seconds, reads))
    files = chance.choice(3, reads, p=[0.3, 0.2, 0.5])
    sizes = np.array([file[4] // PAGE for file in FILES])[files]
    pages = (chance.beta(0.4, 3, reads) * sizes).astype("i8")
    return put_trace(made, seconds, files, pages, op=np.where(chance.random(reads) < 0.1, WRITE, READ))


def make_pools(folder: Path, shares: Iterable[float] = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64)) -> Path:
    """Write runs at several sizes of the pool, the first of them traced; reads go with its power of −0.5."""
    for number, share in enumerate(shares, 1):
        more = {"sequence": number, "reads_per_transaction": 30 * (share / 0.02) ** -0.5}
        if number == 1:
            make_traced(folder / "1", share=share, **more)
        else:
            pool = round(share * 320 * MIB)
            make_run(folder / f"{number}", replace(TRUTH, pool_bytes=pool, variant=f"pool {share:.0%}", **more))
    return folder

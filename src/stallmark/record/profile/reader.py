"""Read the raw tables of a profile that was collected from a server, also while it is collected."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stallmark.errors import StallmarkError, as_reason
from stallmark.record.profile.raw import RAW_TABLES
from stallmark.record.reader import read_stream


def read_raw(folder: Path, name: str) -> pa.Table:
    """Return a raw table with the parts of all sessions, in the order of their samples."""
    schema = RAW_TABLES[name]
    whole = {path.stem: path for path in folder.glob(f"{name}-*.arrows")}
    whole |= {path.stem: path for path in folder.glob(f"{name}-*.parquet")}
    parts = [schema.empty_table()]
    for stem in sorted(whole):
        path = whole[stem]
        try:
            found = list(read_stream(path)) if path.suffix == ".arrows" else [pq.read_table(path)]
            parts += [part.cast(schema) for part in found]
        except (pa.ArrowException, OSError, ValueError) as error:
            said = as_reason(str(error).splitlines()[0])
            raise StallmarkError(f"{path} is damaged ({said}): restore it, or collect the profile anew.") from None
    return pa.concat_tables(parts)


def last_sample(folder: Path) -> int:
    """Return the number of the last sample that is whole; -1 where there is none."""
    samples = read_raw(folder, "samples")
    return samples.column("sample")[-1].as_py() if samples.num_rows else -1

"""Tables of records that are written: put in place of another, as if the run had written them so.

put(folder, "waits", table.drop_columns("application"))
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stallmark.record.manifest_file import read_manifest
from stallmark.record.table_file import writing, written
from support.manifests import changed


def get(folder: Path, name: str) -> pa.Table:
    return pq.read_table(folder / f"{name}.parquet")


def put(folder: Path, name: str, table: pa.Table) -> Path:
    path = folder / f"{name}.parquet"
    with writing(path, table.schema) as writer:
        writer.write_table(table)
    return changed(folder, tables=read_manifest(folder).tables | {name: written(path)})

"""Tables of records that are written: put in place of another, as if the run had written them so.

put(folder, "waits", table.drop_columns("application"))
"""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from stallmark.record.histogram import with_service
from stallmark.record.manifest import read_manifest
from stallmark.record.table_file import writing, written
from support.manifests import changed


def get(folder: Path, name: str) -> pa.Table:
    table = pq.read_table(folder / f"{name}.parquet")
    if "service_gaps" not in table.column_names:
        return table
    return pa.Table.from_batches(map(with_service, table.combine_chunks().to_batches()), table.schema)


def put(folder: Path, name: str, table: pa.Table) -> Path:
    path = folder / f"{name}.parquet"
    with writing(path, table.schema) as writer:
        writer.write_table(table)
    return changed(folder, tables=read_manifest(folder).tables | {name: written(path)})

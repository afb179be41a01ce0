"""Write a run record as CSV, for tools that read no Parquet.

One file per table, and `columns.csv` with the unit and meaning of every column. The histograms of a table go into a
file of their own, a row for each bucket: `transactions.latency.csv`.
"""

import csv
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from stallmark.errors import StallmarkError
from stallmark.record.files import read
from stallmark.record.histogram import VALUES_US, spread
from stallmark.record.reader import Record
from stallmark.record.schema import PROBE_TABLES, TABLES, column, meaning_of, unit_of
from stallmark.redact import FIGURE, FORMULA

COLUMNS = "columns.csv"
_KNOWN = TABLES | PROBE_TABLES


def export(record: Record, folder: Path) -> list[Path]:
    """Write every table of the record into `folder`, with its manifest; return the files.

    Raise StallmarkError where the folder has anything in it: files of another run would stand beside these.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise StallmarkError(f"{folder} is not empty: name another folder.")
    written: list[Path] = []
    described: list[tuple[str, pa.Field]] = []
    for name in record.tables():
        schema = _described(name, record.schema(name))
        histograms = [one.removesuffix("_gaps") for one in schema.names if one.endswith("_gaps")]
        plain = [one for one in schema if not pa.types.is_list(one.type)]
        written.append(_write(record, name, pa.schema(plain), folder / f"{name}.csv"))
        described += [(name, one) for one in plain]
        for kind in histograms:
            keys = [one for one in plain if one.name in ("second", "transaction")]
            buckets = _bucket_columns(kind)
            target = folder / f"{name}.{kind}.csv"
            written.append(_write_histogram(record, name, kind, pa.schema([*keys, *buckets]), target))
            described += [(target.stem, one) for one in (*keys, *buckets)]
    with (folder / COLUMNS).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["table", "column", "unit", "meaning"])
        rows.writerows((table, one.name, unit_of(one), meaning_of(one)) for table, one in described)
    (folder / "manifest.json").write_bytes(read(record.folder / "manifest.json"))
    return [*written, folder / COLUMNS, folder / "manifest.json"]


def _described(name: str, schema: pa.Schema) -> pa.Schema:
    """Return the schema with what is known of columns that were written before they had units."""
    known = _KNOWN.get(name, pa.schema([]))
    return pa.schema([known.field(one.name) if not one.metadata and one.name in known.names else one for one in schema])


def _bucket_columns(kind: str) -> Sequence[pa.Field]:
    return (
        column(f"{kind}_us", pa.int64(), f"lowest value of a bucket of the histogram of {kind}"),
        column("count", pa.int64(), "in the bucket", "transactions"),
    )


def _write(record: Record, name: str, schema: pa.Schema, target: Path) -> Path:
    with pa_csv.CSVWriter(target, schema) as writer:
        for batch in record.raw_batches(name, schema.names):
            writer.write_table(_without_formulas(pa.Table.from_batches([batch]).select(schema.names).cast(schema)))
    return target


def _write_histogram(record: Record, name: str, kind: str, schema: pa.Schema, target: Path) -> Path:
    keys = schema.names[:-2]
    with pa_csv.CSVWriter(target, schema) as writer:
        for batch in record.batches(name, [*keys, f"{kind}_gaps", f"{kind}_counts"]):
            try:
                rows, buckets, counts = spread(batch.column(f"{kind}_gaps"), batch.column(f"{kind}_counts"))
            except ValueError as damaged:
                raise StallmarkError(f"{record.folder}: {damaged}.") from None
            columns = [batch.column(one).take(pa.array(rows)) for one in keys]
            filled = pa.table([*columns, pa.array(VALUES_US[buckets]), pa.array(counts)], names=schema.names)
            writer.write_table(_without_formulas(filled.cast(schema)))
    return target


def _without_formulas(table: pa.Table) -> pa.Table:
    """Return a table of whose texts a spreadsheet takes none for a formula: names in a database may be anybody's."""
    for at, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            texts = table[at]
            figures = pc.match_substring_regex(texts, FIGURE)
            formulas = pc.and_(pc.match_substring_regex(texts, FORMULA), pc.invert(figures))
            harmless = pc.if_else(formulas, pc.binary_join_element_wise("'", texts, ""), texts)
            table = table.set_column(at, field, harmless)
    return table

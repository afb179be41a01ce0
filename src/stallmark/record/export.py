"""Write a run's record or a profile as CSV, for tools that read no Parquet.

One file per table, and `columns.csv` with the unit and meaning of every column. The histograms of a table go into a
file of their own, a row for each bucket: `transactions.latency.csv`.
"""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from stallmark.errors import StallmarkError
from stallmark.record.files import read
from stallmark.record.histogram import VALUES_US, expand
from stallmark.record.schema import column, meaning_of, standard_tables, unit_of
from stallmark.record.table_folder import TableFolder
from stallmark.redact import FIGURE, FORMULA

COLUMNS = "columns.csv"


def export(records: Mapping[Path, TableFolder]) -> dict[Path, list[Path]]:
    """Write every table of each record into its folder, with its manifest; return the files of each folder.

    Raise StallmarkError if a folder is not empty: its files could be taken for this record's. If a table is damaged
    or the disk is full, all folders are left empty.
    """
    for folder in records:
        if folder.exists() and any(folder.iterdir()):
            raise StallmarkError(f"{folder} is not empty: name another folder.")
    try:
        return {folder: list(_export(record, folder)) for folder, record in records.items()}
    except BaseException:
        for folder in records:
            for file in folder.glob("*"):
                file.unlink()
        raise


def _export(record: TableFolder, folder: Path) -> Iterator[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    described: list[tuple[str, pa.Field]] = []
    for name in record.tables():
        schema = _with_units(name, record.schema(name))
        histograms = [column.removesuffix("_gaps") for column in schema.names if column.endswith("_gaps")]
        plain = [field for field in schema if not pa.types.is_list(field.type)]
        yield _write(record, name, pa.schema(plain), folder / f"{name}.csv")
        described += [(name, field) for field in plain]
        for kind in histograms:
            keys = [field for field in plain if field.name in ("second", "transaction", "statement")]
            buckets = _bucket_columns(kind, unit_of(schema.field(f"{kind}_counts")) or "transactions")
            # CSV has no lists, so each histogram is a file of its own.
            target = folder / f"{name}.{kind}.csv"
            yield _write_histogram(record, name, kind, pa.schema([*keys, *buckets]), target)
            described += [(target.stem, field) for field in (*keys, *buckets)]
    with (folder / COLUMNS).open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["table", "column", "unit", "meaning"])
        rows.writerows((table, field.name, unit_of(field), meaning_of(field)) for table, field in described)
    (folder / record.manifest_file).write_bytes(read(record.folder / record.manifest_file))
    yield from (folder / COLUMNS, folder / record.manifest_file)


def _with_units(name: str, schema: pa.Schema) -> pa.Schema:
    """Return the schema with the units of columns from older records filled in."""
    known = standard_tables().get(name, pa.schema([]))
    return pa.schema(
        [known.field(field.name) if not field.metadata and field.name in known.names else field for field in schema]
    )


def _bucket_columns(kind: str, unit: str) -> Sequence[pa.Field]:
    return (
        column(f"{kind}_us", pa.int64(), f"lowest value of a bucket of the histogram of {kind}"),
        column("count", pa.int64(), "in the bucket", unit),
    )


def _write(record: TableFolder, name: str, schema: pa.Schema, target: Path) -> Path:
    with pa_csv.CSVWriter(target, schema) as writer:
        for batch in record.raw_batches(name, schema.names):
            writer.write_table(_without_formulas(pa.Table.from_batches([batch]).select(schema.names).cast(schema)))
    return target


def _write_histogram(record: TableFolder, name: str, kind: str, schema: pa.Schema, target: Path) -> Path:
    keys = schema.names[:-2]
    with pa_csv.CSVWriter(target, schema) as writer:
        for batch in record.batches(name, [*keys, f"{kind}_gaps", f"{kind}_counts"]):
            try:
                rows, buckets, counts = expand(batch.column(f"{kind}_gaps"), batch.column(f"{kind}_counts"))
            except ValueError as damaged:
                raise StallmarkError(f"{record.folder}: {damaged}.") from None
            columns = [batch.column(key).take(pa.array(rows)) for key in keys]
            filled = pa.table([*columns, pa.array(VALUES_US[buckets]), pa.array(counts)], names=schema.names)
            writer.write_table(_without_formulas(filled.cast(schema)))
    return target


def _without_formulas(table: pa.Table) -> pa.Table:
    """Return a table without texts that a spreadsheet takes for formulas: names in a database are untrusted."""
    for index, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            texts = table[index]
            figures = pc.match_substring_regex(texts, FIGURE)
            formulas = pc.and_(pc.match_substring_regex(texts, FORMULA), pc.invert(figures))
            harmless = pc.if_else(formulas, pc.binary_join_element_wise("'", texts, ""), texts)
            table = table.set_column(index, field, harmless)
    return table

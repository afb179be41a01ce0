"""The folder of a user's workload, read into one definition that needs the folder no more, and the schema of its
workload.yaml."""

import csv
import io
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from stallmark.errors import StallmarkError
from stallmark.own_sql.model import OwnSql
from stallmark.own_sql.parameter_sources import names_in
from stallmark.scenarios.model import schema_of
from stallmark.scenarios.read import NotYaml, load
from stallmark.scenarios.validation_errors import sentences
from stallmark.transactions import WORKLOADS

FILE = "workload.yaml"
SETUP = "setup"
MOST_FILE_ROWS = 20_000
"""The most rows of a CSV or Parquet file: they go into the record of each run."""
LONGEST = 1_000_000
"""Characters of an SQL file."""


def read_definition(given: str | Mapping[str, Any], beside: Path = Path()) -> dict[str, Any]:
    """Return the definition of a workload: of a folder, as a path from `beside`, or written out.

    Raise StallmarkError, a sentence, for the first mistake in it.
    """
    where = "sql"
    if isinstance(given, str):
        folder = beside / Path(given).expanduser()
        given = read_folder(folder)
        where = str(folder / FILE if (folder / FILE).is_file() else folder)
    try:
        definition = OwnSql.model_validate(given)
    except ValidationError as error:
        raise StallmarkError(sentences(error, given, Path(where), {}, OwnSql)[0]) from None
    if definition.name in WORKLOADS:
        raise StallmarkError(f"{where}: {definition.name} is a workload of Stallmark's: write another name.")
    return definition.model_dump(mode="json")


def read_folder(folder: Path) -> dict[str, Any]:
    """Return the contents of a folder, as the model takes them."""
    if not folder.is_dir():
        raise StallmarkError(f"{folder} is not a folder: name one with a .sql file for each transaction.")
    # Reports list statements in the order of files, and a listing has another order on each file system: so it is
    # sorted.
    texts = _texts(folder)
    setup = texts.pop(SETUP, "")
    if not texts:
        raise StallmarkError(f"{folder} has no .sql file: write one for each transaction.")
    settings = _yaml(folder / FILE) if (folder / FILE).is_file() else {}
    given = settings.get("transactions")
    if given is not None and not isinstance(given, dict):
        raise StallmarkError(f"{folder / FILE}: transactions lists each with its weight: `place_order: 4`.")
    chosen = dict.fromkeys(texts, None) if given is None else given
    if missing := [name for name in chosen if name not in texts]:
        raise StallmarkError(f"{folder / FILE}: {missing[0]} has no file {missing[0]}.sql: write it, or leave it out.")
    # A file that is not listed is an error, not weight 0: one that is added later would otherwise silently never run.
    if unnamed := [name for name in texts if name not in chosen]:
        raise StallmarkError(f"{folder / FILE} leaves out {unnamed[0]}.sql: add `{unnamed[0]}: 1`, or 0 to rest it.")
    name = re.sub(r"[^a-z0-9_-]+", "_", folder.resolve().name.lower()).strip("_-")
    return {
        # The settings come behind it, so that a name in workload.yaml wins over the folder's.
        "name": name if name[:1].isalpha() else f"sql_{name}",
        **settings,
        "transactions": {key: {"sql": texts[key], **_transaction(choice, folder)} for key, choice in chosen.items()},
        "parameters": _with_rows(settings.get("parameters") or {}, folder),
        "setup": setup,
        "conditions": _texts(conditions) if (conditions := folder / "conditions").exists() else {},
    }


def _texts(folder: Path) -> dict[str, str]:
    """Return the texts of a folder's .sql files by their names."""
    try:
        paths = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".sql")
    except OSError as error:
        raise StallmarkError(f"{folder} cannot be read as a folder ({error.strerror}).") from None
    texts = {path.stem: _text(path) for path in paths}
    if empty := [path for path in paths if not texts[path.stem].strip() and path.stem != SETUP]:
        raise StallmarkError(f"{empty[0]} is empty: write a statement, or remove it.")
    return texts


def _transaction(given: Any, folder: Path) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        return {"weight": given}
    return given | ({"parameters": _with_rows(given["parameters"], folder)} if given.get("parameters") else {})


def _yaml(path: Path) -> dict[str, Any]:
    try:
        content = load(_text(path))
    except NotYaml as error:
        line = f", line {error.line}" if error.line else ""
        raise StallmarkError(f"{path}{line}: {error}.") from None
    if content is not None and not isinstance(content, dict):
        raise StallmarkError(f"{path} is a mapping of `transactions:` and `parameters:`, and this is not one.")
    return content or {}


def _text(path: Path) -> str:
    try:
        # Drops a byte order mark, which some editors write and a server would take for part of the SQL.
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise StallmarkError(f"{path} cannot be read ({error.strerror}).") from None
    except UnicodeDecodeError:
        raise StallmarkError(f"{path} is not a text in UTF-8: save it so.") from None
    if "\0" in text:
        raise StallmarkError(f"{path} has a character 0, which no text has: save it as UTF-8.")
    if len(text) > LONGEST:
        raise StallmarkError(f"{path} has more than {LONGEST:,} characters: it is not a transaction.")
    return text


def _with_rows(sources: Any, folder: Path) -> Any:
    """Return sources with the rows of their files."""
    if not isinstance(sources, dict):
        return sources
    return {
        key: source | {"rows": _rows_of_file(key, source, folder)}
        if isinstance(source, dict) and "file" in source and "rows" not in source
        else source
        for key, source in sources.items()
    }


def _rows_of_file(key: str, source: Mapping[str, Any], folder: Path) -> list[list[Any]]:
    path = folder / str(source["file"])
    if not path.is_file():
        slash = " Write its path with /, which every system takes." if "\\" in str(source["file"]) else ""
        raise StallmarkError(f"{path}, the source of {key}, is not there.{slash}")
    columns, records = _parquet(path) if path.suffix == ".parquet" else _csv(path)
    wanted = source.get("columns") or list(names_in(str(key)))
    if not isinstance(wanted, list):
        raise StallmarkError(f"columns of {key} is a list: write `columns: [{wanted}]`.")
    if unknown := [name for name in wanted if columns.count(name) != 1]:
        problem = "has two columns" if unknown[0] in columns else "has no column"
        separated = " Separate them by commas." if len(columns) == 1 and re.search(r"[;\t|]", columns[0]) else ""
        raise StallmarkError(f"{path} {problem} {unknown[0]}: there are {', '.join(columns)}.{separated}")
    places = [columns.index(name) for name in wanted]
    rows = [[record[place] for place in places] for record in records]
    if not rows:
        raise StallmarkError(f"{path} has no rows, so {key} has no value.")
    if len(rows) > MOST_FILE_ROWS:
        raise StallmarkError(
            f"{path} has {len(rows):,} rows, and at most {MOST_FILE_ROWS:,} travel with a load: put them into a table, "
            "and draw them by a query."
        )
    return rows


def _csv(path: Path) -> tuple[list[str], Iterable[list[Any]]]:
    # Not the lines of the text: a value in quotes may have several.
    reader = csv.reader(io.StringIO(_text(path), newline=""))
    columns: list[str] = []
    records: list[list[Any]] = []
    try:
        for record in reader:
            if not record:  # a blank line
                continue
            if not columns:
                columns = [name.strip() for name in record]
            elif len(record) == len(columns):
                records.append(record)
            else:
                raise StallmarkError(
                    f"{path}, line {reader.line_num}: it has another number of values than the line of headers."
                )
    except csv.Error as error:
        raise StallmarkError(f"{path}, line {reader.line_num}: it is not CSV that can be read ({error}).") from None
    if not columns:
        raise StallmarkError(f"{path} is empty: it begins with a line of the names of its columns.")
    return columns, records


def _parquet(path: Path) -> tuple[list[str], Iterable[list[Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path)
    except (pa.ArrowException, OSError) as error:
        raise StallmarkError(f"{path} is not a Parquet file that can be read ({error}).") from None
    columns = [[_cell(value) for value in column.to_pylist()] for column in table.columns]
    return table.column_names, [list(row) for row in zip(*columns, strict=True)]


def _cell(value: Any) -> Any:
    # The rows go into the definition, which is written as JSON and has no dates or decimals.
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)


_OF_FILES = {"OwnSql": ("setup", "conditions"), "OwnTransaction": ("sql",), "FileRows": ("rows",)}
"""Keys that a record has, and that a folder has as files."""


def workload_schema() -> dict[str, Any]:
    """Return the schema of the workload.yaml of a folder (JSON Schema 2020-12)."""
    schema = schema_of([OwnSql], "A workload of Stallmark")
    for name, keys in _OF_FILES.items():
        definition = schema["$defs"][name]
        for key in keys:
            del definition["properties"][key]
        definition["required"] = [key for key in definition.get("required", ()) if key not in keys]
    workload = schema["$defs"]["OwnSql"]
    # Nothing is required in the file: the folder's name is the workload's, and each .sql file a transaction.
    workload["required"] = []
    transactions = workload["properties"]["transactions"]
    # A number alone is a weight, and a name without a value has the weight 1.
    weight = {"type": ["integer", "null"]}
    transactions["additionalProperties"] = {"anyOf": [transactions["additionalProperties"], weight]}
    return schema

"""The JSON schema of workload.yaml, by which editors complete and check it."""

from typing import Any

from stallmark.own_sql.model import OwnSql
from stallmark.scenarios.model import schema_of

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

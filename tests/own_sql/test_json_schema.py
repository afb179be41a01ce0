"""The JSON schema of workload.yaml."""

import json

import jsonschema
import pytest
from ruamel.yaml import YAML
from support.command_line import stallmark

from stallmark.own_sql.new_options import SCHEMA, STARTER

FULL = """
transactions:
  place_order: {weight: 4, isolation: repeatable read, limit: 500ms}
  browse: 10
  arrive: {rate: 20/s}
  clean_up: {every: 10s, parameters: {age: {from: 1, to: 9, decimals: 2}}}
primary: place_order
parameters:
  customer, region: {query: "SELECT id, region FROM customer ORDER BY id", draw: {zipf: 0.9}, apart: true}
  key: {file: keys.csv, columns: [id]}
  now: {time: now}
  day: {time: {from: -30d, to: 0s}, as: date}
  name: {faker: name, locale: de_DE, distinct: 1000}
  order_id: {result: 1}
"""


def test_it_takes_what_folders_say_and_refuses_what_they_must_not():
    shown = stallmark("schema", "--workload")
    schema = json.loads(shown.stdout)
    validator = jsonschema.Draft202012Validator(schema)
    validator.check_schema(schema)
    for text in (FULL, (STARTER / "workload.yaml").read_text(), "{}"):
        validator.validate(YAML(typ="safe").load(text))
    for wrong in ({"transaction": {}}, {"transactions": {"look": {"sql": "SELECT 1"}}}, {"transactions": {"look": "x"}},
                  {"parameters": {"id": {"from": "a", "to": 2}}}, {"setup": "x"}):  # fmt: skip
        with pytest.raises(jsonschema.ValidationError):
            validator.validate(wrong)
    assert json.loads(SCHEMA.read_text()) == schema, "stallmark schema --workload > …/workload.schema.json"
    properties = [one for definition in schema["$defs"].values() for one in definition.get("properties", {}).values()]
    assert len(properties) > 25

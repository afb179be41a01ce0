"""The JSON schema of scenario files, and what is made of it."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from stallmark.cli.main import main
from stallmark.scenarios.model import FILE, SHIPPED, Scenario, json_schema, reference
from stallmark.scenarios.read import locate, read_any_scenario, shipped
from stallmark.scenarios.variant import Variant

DOCS = Path(__file__).parents[2] / "docs"


@cache
def schema() -> dict[str, Any]:
    return json_schema()


@cache
def page() -> str:
    return reference()


@cache
def validator() -> jsonschema.Draft202012Validator:
    """Return the validator of the schema; each process of the suite imports this module, and one needs it."""
    return jsonschema.Draft202012Validator(schema())


@pytest.mark.thorough
def test_it_is_a_schema():
    validator().check_schema(schema())


@pytest.mark.thorough
def test_the_files_made_of_it_are_current():
    """`stallmark schema > scenarios/scenario.schema.json`, and `--markdown` for docs/scenario-reference.md."""
    assert json.loads((SHIPPED / FILE).read_text()) == schema()
    assert (DOCS / "scenario-reference.md").read_text() == page()


def test_a_kind_that_adds_keys_to_another_repeats_none_of_them():
    [loads, sizing, *_] = page().partition("## Several loads at once")[2].split("\n## ")
    assert sizing.startswith("New hardware for the load of a profile")
    shown = re.findall(r"^\| `(\w+)`", loads + sizing, re.MULTILINE)
    assert {"loads", "replay"} < set(shown) and len(shown) == len(set(shown))


def test_every_key_is_described():
    properties = [
        (section, name, one)
        for section, definition in schema()["$defs"].items()
        for name, one in definition.get("properties", {}).items()
    ]
    assert len(properties) > 100
    assert [(section, name) for section, name, one in properties if not one.get("description")] == []
    assert [name for _, name, _ in properties if f"`{name}`" not in page()] == []


@pytest.mark.parametrize("name", shipped())
def test_the_shipped_ones_pass_it_and_name_it(name: str):
    path = locate(name)
    text = path.read_text()
    header, named = text.splitlines()[0].split("=")
    assert header == "# yaml-language-server: $schema" and (path.parent / named).samefile(SHIPPED / FILE)
    validator().validate(YAML(typ="safe").load(text))


FIVE: dict[str, Any] = {
    "name": "five", "workload": {"name": "bank", "scale": {"branches": 1}}, "users": 2, "measure": "1s",
    "variants": [{"name": "a"}],
}  # fmt: skip


def test_five_keys_are_enough():
    validator().validate(FIVE)
    scenario = Scenario.model_validate(FIVE)
    assert scenario.reset == "restore" and scenario.timeline(Variant(name="one")).steps[0].measure_s == 30


@pytest.mark.parametrize(
    "change", [{"userz": 3}, {"order": "random"}, {"users": "many"}, {"measure": 5}, {"variants": []}, {"probe": "now"}]
)
def test_what_the_model_refuses_the_schema_refuses(change: dict[str, Any]):
    with pytest.raises(jsonschema.ValidationError):
        validator().validate(FIVE | change)


def test_a_new_scenario_is_a_copy_that_names_the_schema_and_replaces_nothing(tmp_path: Path):
    file = tmp_path / "mine" / "My sweep.yaml"
    assert CliRunner().invoke(main, ["new", str(file), "--from", "user-ramp"]).exit_code == 0
    made, given = read_any_scenario(str(file)), read_any_scenario("user-ramp")
    of_the_shipped = {name: getattr(given, name) for name in ("name", "title", "answers", "needs")}
    assert made.name == "my-sweep" and made.model_copy(update=of_the_shipped) == given
    assert given.title not in file.read_text(), "it would be untrue of a changed one"
    named = file.read_text().splitlines()[0].partition("$schema=")[2]
    assert json.loads(Path(named).read_text()) == schema()
    before = file.read_text()
    assert CliRunner().invoke(main, ["new", str(file)]).exit_code == 3 and file.read_text() == before
    link = tmp_path / "link.yaml"
    link.symlink_to(tmp_path / "nowhere.yaml")
    assert CliRunner().invoke(main, ["new", str(link)]).exit_code == 3 and link.is_symlink()
    assert CliRunner().invoke(main, ["new", str(tmp_path / "b.yaml"), "--from", "nosuch"]).exit_code == 2
    assert not (tmp_path / "b.yaml").exists()


@pytest.mark.parametrize("name", ["2026", "true", "null", "1e3", "2026-01-31", "0x1f"])
def test_a_new_scenario_may_have_a_name_that_yaml_reads_as_something_else(tmp_path: Path, name: str):
    file = tmp_path / f"{name}.yaml"
    assert CliRunner().invoke(main, ["new", str(file)]).exit_code == 0
    assert read_any_scenario(str(file)).name == name


def test_a_new_scenario_is_made_of_a_file_with_a_byte_order_mark_and_of_a_wrong_one_not_at_all(tmp_path: Path):
    for name, content in (("bom", b"\xef\xbb\xbf" + json.dumps(FIVE).encode()), ("wrong", b"name: a"), ("no", b"\xff")):
        (tmp_path / name).write_bytes(content)
        made = tmp_path / f"{name}.yaml"
        code = CliRunner().invoke(main, ["new", str(made), "--from", str(tmp_path / name)]).exit_code
        assert (code, made.exists()) == ((0, True) if name == "bom" else (3, False))


@pytest.mark.parametrize(
    ("options", "refusal"),
    [
        (["--record", "--metrics"], "--record and --metrics are given: name one of them."),
        (["--workload", "--markdown"], "--workload has no page: leave out --markdown."),
    ],
)
def test_options_of_which_one_would_be_ignored_are_refused(options: list[str], refusal: str):
    done = CliRunner().invoke(main, ["schema", *options])
    assert done.exit_code == 2 and refusal in done.stderr

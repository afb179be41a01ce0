"""The settings of a scenario: YAML's values are those that a server takes, whatever YAML makes of them."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stallmark.errors import StallmarkError
from stallmark.scenarios.read import read_scenario

SCENARIO = """\
{head}name: settings
workload: {{name: bank, scale: {{branches: 1}}}}
users: 1
measure: 10s
settings: {settings}
variants:
  - {{name: own}}
  - {{name: other, settings: {of_variant}}}
"""


@pytest.fixture
def read(tmp_path):
    def read_settings(settings="{}", of_variant="{}", head="", sets=()):
        path = tmp_path / "scenario.yaml"
        path.write_text(SCENARIO.format(settings=settings, of_variant=of_variant, head=head))
        scenario = read_scenario(str(path), sets)
        return [scenario.setting_for(variant, "settings") for variant in scenario.variants]

    return read_settings


WORDS = [
    ("off", "off"), ("on", "on"), ("true", "on"), ("false", "off"), ("64MB", "64MB"), ("'64MB'", "64MB"),
    ("64 MB", "64 MB"), ("4", "4"), ("'4'", "4"), ("-1", "-1"), ("0.9", "0.9"), ("0.90", "0.9"), (".5", "0.5"),
    ("1.0", "1"), ("1e3", "1000"), ("1e-7", "0.0000001"), ("0x40", "64"), ("1_000", "1000"), ("100%", "100%"),
    ("''", ""), ("&same true", "on"), ("&same 4", "4"), ("no", "no"),
]  # fmt: skip


@pytest.mark.parametrize(("written", "value"), WORDS)
def test_a_value_is_what_the_server_takes(read, written, value):
    assert read(f"{{name: {written}}}") == [{"name": value}] * 2


@pytest.mark.parametrize("written", ["off", "no", "false", "Off"])
def test_older_yaml_takes_words_for_truths(read, written):
    assert read(f"{{name: {written}}}", head="%YAML 1.1\n---\n")[0] == {"name": "off"}


@pytest.mark.parametrize(("written", "value"), WORDS)
def test_an_option_of_the_command_takes_the_same(read, written, value):
    assert read(sets=[f"settings.name={written}"])[0] == {"name": value}


def test_a_variant_has_its_own_over_those_of_all(read):
    own, other = read("{a: 1, b: 2}", "{b: 3, max degree of parallelism: 4}")
    assert own == {"a": "1", "b": "2"} and other == {"a": "1", "b": "3", "max degree of parallelism": "4"}
    assert read() == [None, None]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ("[work_mem]", "settings must be written as"),
        ("{work_mem: }", "a word or a number"),
        ("{work_mem: [1, 2]}", "a word or a number"),
        ("{work_mem: {a: 1}}", "a word or a number"),
        ("{since: 2026-01-02}", "a word or a number"),
        ("{work_mem: .inf}", "not a value that a server takes"),
        ("{'': 1}", "must not be empty"),
        ('{a: "1\\n2"}', "in one line"),
        ("{1: 2}", "must be a text"),
        ("{primary_conninfo: 'host=a password=b'}", "a secret into every record"),
        ("{ssl_passphrase_command: cat}", "a secret into every record"),
    ],
)
def test_what_is_no_setting_is_refused(read, settings, reason):
    with pytest.raises(StallmarkError, match=reason):
        read(settings)


NUMBERS = st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)


@given(NUMBERS)
def test_a_number_stays_the_number_that_it_is(read, number):
    [[value], _] = [settings.values() for settings in read(json.dumps({"name": number}))]
    assert Decimal(value) == Decimal(repr(number)) and "e" not in value.lower()


@given(st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=40))
def test_a_word_in_quotes_stays_as_it_is(read, word):
    try:
        assert read(json.dumps({"name": word}, ensure_ascii=False))[0] == {"name": word}
    except StallmarkError as error:
        assert "a secret" in str(error)

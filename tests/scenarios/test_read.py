"""Errors of a scenario file are said with its line and the way out, in plain words."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallmark.errors import StallmarkError, WrongOption
from stallmark.scenarios import read as reading
from stallmark.scenarios.model import Scenario
from stallmark.scenarios.read import LoadOptions, load, locate, read_any_scenario, read_document, read_scenario, shipped

# Words of the libraries, which a user should never read.
JARGON = re.compile(r"Input should|valid (dict|list|int|number|string)|instance of|pydantic|Traceback|Mapping\[|loc=")


def test_a_right_file_is_read(read):
    scenario = read()
    assert (scenario.users, scenario.measure, scenario.call_timeout) == ([4], 10, 60)


WRONG = [
    # unknown keys
    ("measure: 10s", "mesure: 10s", ", line 9: unknown key mesure: did you mean measure?"),
    ("emulated_array:\n", "device:\n", ", line 12: device is called emulated_array now: rename it."),
    ("  data: {", "  date: {", ", line 13: unknown key emulated_array.date: did you mean data?"),
    ("read_ms", "reed_ms", ", line 13: unknown key emulated_array.data.reed_ms: did you mean read_ms?"),
    ("buffer_pool: 8", "bufferpool: 8", ", line 16: unknown key variants.0.bufferpool: did you mean buffer_pool?"),
    (
        "emulated_array: bare",
        "xyz: bare",
        ", line 18: unknown key variants.1.xyz: there are name, buffer_pool, emulated_array, place, array, before, "
        "settings, row_versioning, resource_pool, during, without.",
    ),
    # wrong units
    ("measure: 10s", "measure: 10", ", line 9: measure: 10 has no unit: write 10s or 10min."),
    ("8MiB", "8", ", line 16: variants.0.buffer_pool: 8 has no unit: write 8MiB or 8 %."),
    ("read_ms: 2", "read_ms: 2ms", ", line 13: emulated_array.data.read_ms must be a number, not '2ms'."),
    # impossible values
    ("measure: 10s", "measure: 500ms", ", line 9: measure must be at least 1s, not '500ms'."),
    ("warm_up: 1s", "warm_up: -1s", ", line 8: warm_up must be at least 0s, not '-1s'."),
    ("users: 4", "users: 0", ", line 7: users must be at least 1, not 0."),
    ("users: 4", "users: many", ", line 7: users must be a whole number, not 'many'."),
    ("users: 4", "users: true", ", line 7: users must be a whole number, not true."),
    ("users: 4", "users: 4.5", ", line 7: users must be a whole number, not 4.5."),
    ("users: 4", "users: [4, 20000]", ", line 7: users.1 must be at most 10,000, not 20000."),
    ("users: 4", "users: []", ", line 7: users must have at least one item, not an empty list."),
    ("spindles: 8", "spindles: 0", ", line 13: emulated_array.data: spindles must be a whole number from 1 to"),
    ("branches: 1}", "branches: 0}", ", line 6: workload.scale: The bank's scale is a number of branches from 1"),
    ("branches: 1}", "branch: 1}", ", line 6: workload.scale: The bank's scale has no 'branch': it is `branches: N`."),
    ("name: bank", "name: bnak",
        ", line 6: workload.name: 'bnak' is not a workload: choose one of bank, brokerage, mail, warehouse"),
    ("reset: restore", "reset: restor", ", line 11: reset must be restore or continue or {"),
    ("cache: prefilled", "cache: warm", ", line 10: start_cache must be cold, prefilled or as it is, not 'warm'."),
    ("emulated_array: bare", "emulated_array: bear",
        ", line 18: variants.1.emulated_array must be bare or {data: …, wal: …}, not 'bear'."),
    ("order:", "repeats: 101\norder:", ", line 5: repeats must be at most 100, not 101."),
    ("order:", "repeats: 1.5\norder:", ", line 5: repeats must be a whole number, not 1.5."),
    ("name: small", "name: Small One", ", line 1: name must be small letters, digits and hyphens, not 'Small One'."),
    ("title: A small scenario", "title: 5", ", line 2: title must be a text (put it in quotes), not 5."),
    ("name: slow", f"name: {'x' * 61}", ", line 15: variants.0.name must have at most 60 characters"),
    ("name: slow", 'name: ""', ", line 15: variants.0.name must not be empty"),
    ("order:", "arrivals: {kind: fixed, rate: 0}\norder:", ", line 5: arrivals.rate must be more than 0, not 0."),
    ("order:", "arrivals: {kind: fixed, rate: .inf}\norder:", ", line 5: arrivals.rate must be a number, not inf."),
    ("order:", "arrivals: {kind: fixd, rate: 1}\norder:", ", line 5: arrivals.kind must be fixed or poisson, not"),
    ("order:", "observe: [io]\norder:", ", line 5: observe.0 must be query_store, io_latency or io_trace, not 'io'."),
    ("order:", "observe: io_latency\norder:", ", line 5: observe must be a list (a line beginning with"),
    ("order:", "observe: [io_latency, io_latency]\norder:",
        ", line 5: observe: io_latency is there twice: write it once."),
    ("order:", "arrivals: open\norder:", ", line 5: arrivals must be closed or {kind: …, rate: …}, not 'open'."),
    (
        "order:",
        "arrivals: {kind: fixed, rate: 1}\nthink_time: {mean: 1s}\norder:",
        ": think_time belongs to a closed loop: remove it, or set arrivals: closed.",
    ),
    # a mix that cannot be
    ("branches: 1}", "branches: 1}, mix: {transfr: 1}", ", line 6: workload.mix: transfr is no transaction of bank: "),
    ("branches: 1}", "branches: 1}, mix: {transfer: 0}", ", line 6: workload.mix: transfer has the weight 0: give it "),
    ("branches: 1}", "branches: 1}, mix: {transfer: many}", ", line 6: workload.mix.transfer must be a number, not "),
    ("branches: 1}", "branches: 1}, mix: {transfer: true}", ", line 6: workload.mix.transfer must be a number, not "),
    ("branches: 1}", "branches: 1}, mix: {transfer: .nan}", ", line 6: workload.mix.transfer must be a number, not "),
    ("branches: 1}", "branches: 1}, mix: {}", ", line 6: workload.mix must have at least one item, not an empty "),
    ("branches: 1}", "branches: 1}, mix: reads", ", line 6: workload.mix must be written as {…}, not 'reads'."),
    ("branches: 1}", "branches: 1}, mix: {read_share: 0.9}", ", line 6: workload.mix: read_share cannot be 0.9: no "),
    ("branches: 1}", "branches: 1}, locality: 0.5", ", line 6: workload.locality: bank has no customers to divide "),
    ("branches: 1}", "branches: 1}, locality: 50 %", ", line 6: workload.locality must be a number, not '50 %'."),
    ("branches: 1}", "branches: 1}, locality: 1.5", ", line 6: workload.locality must be at most 1, not 1.5."),
    # wrong shapes
    ("{name: bank, scale: {branches: 1}}", "bank", ", line 6: workload must be written as {name: …, scale: …,"),
    ("scale: {branches: 1}", "scale: 1", ", line 6: workload.scale must be written as {…}, not 1."),
    ("- name: slow\n    buffer_pool: 8MiB\n", "- slow\n", ", line 15: variants.0 must be written as {name: …,"),
    ("needs: Nothing.", "needs:", ", line 4: needs must be a text (put it in quotes), not empty."),
    # missing keys
    ("measure: 10s\n", "", ": measure is missing: add it."),
    (", sync_ms: 1", "", ", line 13: emulated_array.data.sync_ms is missing: add it."),
    ("  - name: bare\n    emulated_array: bare\n", "  - emulated_array: bare\n",
        ", line 17: variants.1.name is missing: add it."),
    ("order:", "arrivals: {kind: fixed}\norder:", ": arrivals.rate is missing: add it, or search for it."),
    # two of a name
    ("name: bare", "name: slow", ", line 14: variants: two variants have the same name, 'slow': give each its own."),
    ("order:", "users: 5\norder:", ", line 8: the key users is there twice: keep one."),
    # not YAML
    ("reset: restore", "reset: [", ", line 13: this is not YAML"),
    ("order:", "\torder:", ", line 5: this is not YAML"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "sentence"), WRONG, ids=[new[:30] for _, new, _ in WRONG])
def test_an_error_names_the_line_and_the_way_out(read, path, old, new, sentence):
    with pytest.raises(StallmarkError) as refused:
        read(old, new)
    said = str(refused.value)
    assert said.startswith(f"{path}{sentence}")
    assert said.count("\n") == 0, "one mistake, one sentence"
    assert not JARGON.search(said)
    assert said.endswith((".", "?")) and not said.endswith("..")


DEEP = "[" * 250_000
LAUGHS = "\n".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 20)}]" for a, b in pairwise("abcdefghi"))
ENDLESS = {
    f"name: {DEEP}": ", line 1: it is nested more than 20 deep",
    "name: x\nneeds: " + "{a: " * 5000: ", line 2: it is nested more than 20 deep",
    "? " * 5000: ", line 1: it is nested more than 20 deep",
    "name: &a\n  <<: *a": ", line 2: *a refers to what it is a part of",
    "name: &a [1, *a]": ", line 1: *a refers to what it is a part of",
    f"a: &a [{'1, ' * 20}]\n{LAUGHS}": ", line 3: it has more than 5,000 values",
    "variants:\n" + "- {name: x}\n" * 60_000: ": it has more than 262,144 characters",
    "variants:\n" + "- a\n" * 60_000: ", line 4999: it has more than 5,000 values",
    f"users: {'1' * 5001}": ", line 1: a number of 5,001 digits",
    f"users: 0x{'f' * 5001}": ", line 1: a number of 5,003 digits",
    "name: !!int abc": ", line 1: tag:yaml.org,2002:int is a tag",
    "name: 2026-02-30": ": it holds what looks like a date or a number but is not valid",
    "a: &a 1\nb: &a 2": ", line 2: &a is there twice",
}


@pytest.mark.thorough
@pytest.mark.parametrize("text", ENDLESS, ids=list(ENDLESS.values()))
def test_yaml_without_end_is_refused_at_once_in_a_file_and_in_an_override(read, path, text, recwarn):
    path.write_text(text)
    with pytest.raises(StallmarkError) as refused:
        read_any_scenario(str(path))
    assert str(refused.value).startswith(f"{path}{ENDLESS[text]}") and len(str(refused.value)) < 500
    path.write_text(locate("demo").read_text())
    with pytest.raises(StallmarkError) as refused:
        read_any_scenario(str(path), [f"needs={text}"])
    assert str(refused.value).startswith("--set needs=") and len(str(refused.value)) < 500
    assert not list(recwarn)


def test_what_is_there_twice_by_a_reference_is_read(path):
    text = re.sub("^title: .*", "title: &said A word", locate("demo").read_text(), flags=re.MULTILINE)
    path.write_text(re.sub("^needs: .*", "needs: *said", text, flags=re.MULTILINE))
    assert read_any_scenario(str(path)).needs == "A word"


LONG = "x" * 300
MANY = "[" + ", ".join(f"{{name: v{number}}}" for number in range(101)) + "]"


@pytest.mark.parametrize(
    ("override", "said"),
    [
        (f"name={LONG}", f"name must have at most 60 characters, not '{'x' * 100}…'."),
        (f"variants={MANY}", "variants must have at most 100 items, not a list."),
        (".".join("a" * 25) + "=1", "it names more than 20 keys within each other."),
    ],
)
def test_what_is_too_long_is_refused_at_once(read, override, said):
    with pytest.raises(StallmarkError) as refused:
        read(sets=(override,))
    assert str(refused.value).endswith(said) and len(str(refused.value)) < 400


def test_a_scenario_whose_name_no_file_can_have_is_not_there():
    with pytest.raises(StallmarkError, match=f"'{'x' * 100}…' is neither a file nor a scenario"):
        read_scenario(LONG)


def test_every_mistake_is_named_at_once(read):
    with pytest.raises(StallmarkError) as refused:
        read("measure: 10s", "measure: 10", "reset: restore", "reset: no")
    assert len(str(refused.value).splitlines()) == 2


@pytest.mark.parametrize(("overrides", "validated"), [((), 1), (("measure=10",), 2)])
def test_a_wrong_scenario_is_read_once_and_validated_again_only_without_its_options(
    path, monkeypatch, overrides, validated
):
    calls = []

    def counted(name, works):
        return lambda *given, **more: calls.append(name) or works(*given, **more)

    for name in ("load", "model_for"):
        monkeypatch.setattr(reading, name, counted(name, getattr(reading, name)))
    path.write_text(locate("demo").read_text() if overrides else "name: demo\n")
    with pytest.raises(StallmarkError):
        reading.read_any_scenario(str(path), overrides)
    assert calls.count("load") == 1 + len(overrides) and calls.count("model_for") == validated


@pytest.mark.parametrize("content", [b"", b"- a\n", b"just words\n", b"5\n"])
def test_a_file_without_a_mapping_is_no_scenario(path, content):
    path.write_bytes(content)
    with pytest.raises(StallmarkError, match="holds no scenario: it must be a mapping that begins with `name:`"):
        read_scenario(str(path))


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"name: \x00\n", b"\x89PNG\r\n\x1a\n"])
def test_a_file_that_is_no_text_is_said_to_be_none(path, content):
    path.write_bytes(content)
    with pytest.raises(StallmarkError, match=r"is not (a text file|YAML .it holds characters)"):
        read_scenario(str(path))


def test_a_misspelt_scenario_is_guessed():
    with pytest.raises(
        StallmarkError, match=r"'dmo' is neither a file nor a scenario of Stallmark: did you mean demo\?"
    ):
        read_scenario("dmo")


def test_an_unknown_scenario_is_answered_with_those_there_are(tmp_path):
    for unknown in ("", "/nowhere/at-all.yaml", str(tmp_path)):
        with pytest.raises(StallmarkError, match=f"there are {', '.join(shipped())}"):
            read_scenario(unknown)


def test_overrides_change_what_they_name(read):
    scenario = read(
        sets=("measure=5s", "users=[1, 2]", "workload.scale.branches=3", "variants.1.buffer_pool=9MiB", "ramp=2s")
    )
    assert (scenario.measure, scenario.users, scenario.ramp) == (5, [1, 2], 2)
    assert scenario.workload.scale == {"branches": 3}
    assert str(scenario.variants[1].buffer_pool) == "9MiB"


def test_an_override_may_make_what_the_file_does_not_have(read):
    device = "{spindles: 1, read_ms: 1, write_ms: 1, sync_ms: 1, mb_per_s: 1}"
    assert read(sets=(f"variants.0.emulated_array.wal={device}",)).variants[0].emulated_array.wal.spindles == 1


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("measure", "write it as key=value, for example --set measure=60s."),
        ("=3s", "write it as key=value, for example --set measure=60s."),
        ("measure=3", "measure: 3 has no unit: write 3s or 3min."),
        ("measure=", "measure: '' is not a duration"),
        ("emulated_array.data.read_ms=", "emulated_array.data: read_ms must be a number from 0 to 60,000, not empty."),
        ("mesure=3s", "unknown key mesure: did you mean measure?"),
        ("emulated_array.data.read_ms=x", "emulated_array.data.read_ms must be a number, not 'x'."),
        ("users=[1,", "this is not YAML ("),
        ("variants.7.name=x", "7 is not an item of this list: write a number from 0 to 1."),
        ("variants.slow.name=x", "slow is not an item of this list: write a number from 0 to 1."),
        ("title.size=3", "there is nothing inside a single value to set size in."),
        ("users=", "users is missing: write how many there are, or search for it."),
        ("measure=101d", "measure must be at most 8640000s, not '101d'."),
        ("precondition={size: 1GiB, round: 25h}", "precondition.round must be at most 86400s, not '25h'."),
        ("probe={seconds: 25h}", "probe.seconds must be at most 86400s, not '25h'."),
    ],
)
def test_an_error_of_an_override_names_the_override(read, override, sentence):
    with pytest.raises(StallmarkError) as refused:
        read(sets=(override,))
    assert str(refused.value).startswith(f"--set {override}: {sentence}")
    assert isinstance(refused.value, WrongOption)


@pytest.mark.parametrize(
    ("overrides", "options", "sentence"),
    [
        (["workload.scale.branches=0", "measure=60s"], {}, "--set workload.scale.branches=0: workload.scale: "),
        (["workload.scale.branches=2", "workload.scale.days=1"], {},
            "--set workload.scale.branches=2, --set workload.scale.days=1: workload.scale: "),
        (["search={of: users, from: 1, to: 5}"], {}, "--set search={of: users, from: 1, to: 5}: search finds the "),
        (["search={of: users, from: 1, to: 5}"], {"users": 3},
            "--set search={of: users, from: 1, to: 5}, --users 3: search finds the "),
    ],
)  # fmt: skip
def test_a_mistake_that_only_options_make_is_theirs_and_not_of_a_line(path, overrides, options, sentence):
    with pytest.raises(WrongOption) as refused:
        read_any_scenario(str(path), overrides, LoadOptions(**options))
    assert str(refused.value).startswith(sentence) and str(path) not in str(refused.value)


def test_a_mistake_below_a_key_of_a_document_without_a_file_is_of_the_option():
    document = load(locate("demo").read_text())
    with pytest.raises(WrongOption, match=r"^--set workload\.scale\.days=0: workload\.scale: "):
        read_document(document, ["workload.scale.days=0"])


def test_a_mistake_of_a_file_is_not_put_down_to_options(path):
    path.write_text(path.read_text().replace("branches: 1}", "branches: 0}"))
    for overrides in ([], ["measure=60s"], ["workload.seed=5"]):
        with pytest.raises(StallmarkError, match=f"^{path}, line 6: workload.scale: ") as refused:
            read_any_scenario(str(path), overrides)
        assert not isinstance(refused.value, WrongOption)


def keys_in(document, *before: str):
    """Yield the dotted keys of a document, at every depth."""
    for key, value in document.items() if isinstance(document, dict) else enumerate(document):
        yield ".".join([*before, str(key)])
        if isinstance(value, dict | list):
            yield from keys_in(value, *before, str(key))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["demo", "cells-emulated", "sizing", "saturation"])
@pytest.mark.parametrize("value", ["", "[]", "{}", "''", "true", "false"])
def test_a_wrong_value_is_answered_without_words_of_python(name, value):
    for key in {*keys_in(load(locate(name).read_text())), *Scenario.model_fields}:
        try:
            read_any_scenario(name, [f"{key}={value}"])
        except StallmarkError as error:
            assert not re.search(r"\b(None|True|False)\b", str(error)) and not JARGON.search(str(error)), error


REAL = "emulated_array=null"
CACHED = "emulated_array.data={spindles: 2, read_ms: 1, write_ms: 1, sync_ms: 1, mb_per_s: 100, cache: {size: 25 %}}"
REFUSED = [
    # waiting for a steady state, and the service level
    ("warm_up=20", "20 has no unit: write 20s or 20min"),
    ("warm_up={until: steady}", "warm_up.at_most is missing: add it"),
    ("warm_up={until: warm, at_most: 5min}", "warm_up.until must be steady, not 'warm'"),
    ("warm_up={until: steady, at_most: 5min, atleast: 1s}", "did you mean at_least?"),
    ("warm_up={until: steady, at_least: 10min, at_most: 5min}", "leaves no time to wait after at_least 600s"),
    ("slo=fast", "slo must be oltp, dss or mail or {read: …, percentile: …, transactions: …}, not 'fast'"),
    ("slo={read: 0s}", "slo.read must be more than 0"),
    ("slo={read: 5ms, percentile: p50}", "slo.percentile must be p95 or p99, not 'p50'"),
    # a key that is no more
    ("profile=0.12", "profile is no key any more: write arrivals: {kind: poisson, rate: …}, or search: {of: rate"),
    # an array, real or emulated
    (REAL, "array={dram: 25 %}", "25 % is a share, and of what is not known here"),
    (REAL, "array={dram: much}", "'much' is not a size"),
    (REAL, "array={firmware: 2.10}", "it is read as the number 2.1: put it in quotes"),
    (REAL, "array={admin_password: x}", "admin_password would be in every record and report: remove it"),
    ("array={raid: RAID 10}", "'slow' runs on an emulated array", "`array` is of a real"),
    ("variants.0.before={ask: Ready?}", "'slow' runs on an emulated array", "`before` is of a real"),
    ("precondition={size: 1GiB}", "'slow' runs on an emulated array", "`precondition` is of a real"),
    ("probe={folder: /mnt/array}", "'slow' runs on an emulated array", "`probe.folder` is of a real"),
    ("emulated_array.data={spindles: 2, sync_ms: 1, mb_per_s: 100, cache: {size: 25 %}}", "read_ms"),
    (CACHED.replace("size", "sise"), "unknown key emulated_array.data.cache.sise: did you mean size?"),
    (CACHED.replace("25 %", "25"), "25 has no unit: write 25MiB or 25 %"),
    # what is done before a variant
    (REAL, "variants.0.before={cmd: x}", "unknown key variants.0.before.cmd: did you mean command?"),
    (REAL, "variants.0.before={}", "variants.0.before: write either a command"),
    (REAL, "variants.0.before={ask: Ready?, command: [x]}", "variants.0.before: write either a command"),
    (REAL, "variants.0.before={ask: Ready?, timeout: 5s}", "timeout applies to a command"),
    (REAL, "variants.0.before={command: [x], timeout: 5}", "variants.0.before.timeout: 5 has no unit: write 5s or"),
    (REAL, "variants.0.before={command: []}", "variants.0.before.command must have at least one item"),
    (REAL, "variants.0.before=ls", "variants.0.before must be written as {command: …, timeout: …, ask: …}, not 'ls'"),
    # the order of runs and the metric
    ("order=random", "abba"),
    ("primary=iops", "read_ms"),
]


@pytest.mark.parametrize("case", REFUSED, ids=[" ".join(case[:2])[:60] for case in REFUSED])
def test_what_cannot_be_is_one_sentence(read, case):
    sets, said = ((REAL, case[1]), case[2:]) if case[0] == REAL else (case[:1], case[1:])
    with pytest.raises(StallmarkError) as refused:
        read(sets=sets)
    assert all(part in str(refused.value) for part in said)
    assert "\n" not in str(refused.value)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=5,
)
KEYS = [
    "name", "title", "workload", "workload.name", "workload.scale", "workload.scale.branches", "workload.seed", "users",
    "ramp", "warm_up", "measure", "arrivals", "think_time", "call_timeout", "buffer_pool", "emulated_array",
    "emulated_array.data", "emulated_array.data.spindles", "emulated_array.data.read_ms", "start_cache", "reset",
    "repeats", "variants", "variants.0", "variants.0.buffer_pool", "variants.1.emulated_array",
]  # fmt: skip


@settings(max_examples=150)
@given(st.sampled_from(KEYS), VALUES)
@pytest.mark.thorough
def test_no_value_whatsoever_ends_in_anything_but_plain_sentences(path, key, value):
    text = json.dumps(value, ensure_ascii=False)
    try:
        read_scenario(str(path), [f"{key}={text}"])
    except StallmarkError as error:
        assert not JARGON.search(str(error).replace(text, ""))


def test_a_file_that_still_says_how_long_it_takes_is_read_as_if_it_did_not(tmp_path: Path):
    for name in ("demo", "saturation"):
        file = tmp_path / f"{name}.yaml"
        file.write_text(locate(name).read_text() + "takes: 3 minutes\n")
        assert read_any_scenario(str(file)) == read_any_scenario(name)


# The options of `stallmark run` that other load tools have too.


def test_options_of_other_tools_change_the_scenario(path):
    plain = read_any_scenario(path)
    changed = read_any_scenario(path, options=LoadOptions(30, 60.0))
    assert (changed.users, changed.measure, changed.arrivals) == ([30], 60, plain.arrivals)
    assert changed.model_copy(update={"users": plain.users, "measure": plain.measure}) == plain
    open_loop = read_any_scenario(path, ("think_time.mean=1s",), LoadOptions(rate=50))
    assert (open_loop.arrivals.kind, open_loop.arrivals.rate, open_loop.think_time) == ("poisson", 50, None)
    evenly = read_any_scenario(path, ("arrivals.kind=fixed",), LoadOptions(rate=2.5))
    assert (evenly.arrivals.kind, evenly.arrivals.rate) == ("fixed", 2.5)
    loads = read_any_scenario("htap", options=LoadOptions(duration_s=5.0))
    assert loads.measure == 5 and loads.loads == read_any_scenario("htap").loads


@pytest.mark.parametrize(
    ("scenario", "overrides", "options", "reason"),
    [
        ("user-ramp", (), {"users": 3}, "varies its users (1, 10, 20, 50, 100)"),
        ("htap", (), {"users": 3}, "--set 'loads.brokerage.users=3'"),
        ("io-blender", (), {"rate": 3.0}, "--set 'loads.mail.arrivals={kind: poisson, rate: 3}'"),
        ("power-memory-storage", (), {"duration_s": 5.0}, "--duration is of users who execute transactions"),
        ("saturation", (), {"users": 3}, "--users is of users who execute transactions"),
        ("demo", ("users=5",), {"users": 3}, "--users and --set users are one thing"),
        ("demo", ("arrivals.rate=5",), {"rate": 3.0}, "--rate and --set arrivals are one thing"),
        ("demo", (), {"users": 20_000}, "--users 20000: users"),
        ("ceiling", (), {"users": 3}, "search finds the number of users"),
    ],
)
def test_an_option_that_a_scenario_has_no_place_for_is_one_sentence(scenario, overrides, options, reason):
    with pytest.raises(StallmarkError) as refused:
        read_any_scenario(scenario, overrides, LoadOptions(**options))
    assert reason in str(refused.value) and "\n" not in str(refused.value)

"""`stallmark sql`: the forms of its answer."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.command_line import stallmark
from support.synthetic import Truth, make_run

from stallmark.cli.export import ROWS_SHOWN
from stallmark.cli.output import out
from stallmark.errors import StallmarkError

VALUES = (
    "select 1 as id, 'x' as name, null as nothing, 0.1::double + 0.2 as small, 12345678.9::double as"
    " large, 1.50::decimal(9, 2) as price, true as yes, 'nan'::double as odd, [1.5, null] as several,"
    " date '2026-01-02' as day, {'a': 'inf'::double} as inner, 170141183460469231731687303715884105727 as huge"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Path:
    return make_run(tmp_path_factory.mktemp("sql") / "01", Truth(warm_up_s=3, measured_s=12))


def test_the_terminal_shows_aligned_columns_and_what_is_missing(run, monkeypatch):
    monkeypatch.setattr(out, "_width", 200)
    header, row = stallmark("sql", run, VALUES).stdout.rstrip().split("\n")
    assert header.split() == [
        "id", "name", "nothing", "small", "large", "price", "yes", "odd", "several", "day", "inner", "huge"
    ]  # fmt: skip
    assert row.split() == [
        "1", "x", "–", "0.3", "12,345,679", "1.50", "true", "–", "[1.5,", "null]", "2026-01-02", '{"a":', "null}",
        "170141183460469231731687303715884105727",
    ]  # fmt: skip


def test_a_narrow_terminal_drops_columns_and_names_them(run, monkeypatch):
    monkeypatch.setattr(out, "_width", 30)
    shown = stallmark("sql", run, "select 123456789 as a, null as b, 123456789 as c, 123456789 as d").stdout
    assert max(map(len, shown.splitlines())) <= 30
    assert shown.splitlines()[0].split() == ["a", "b", "c"] and "Not shown at this width: d" in shown


@pytest.mark.thorough
def test_a_process_prints_nothing_else_at_its_end(run):
    argv = [sys.executable, "-m", "stallmark.cli.entry", "sql", run, "select 1"]
    assert not subprocess.run(argv, capture_output=True, check=True).stderr


@pytest.mark.thorough
def test_times_with_a_zone_are_in_utc_on_any_machine(run):
    argv = [sys.executable, "-m", "stallmark.cli.entry", "sql", run, "select to_timestamp(0) as t", "--json"]
    done = subprocess.run(argv, capture_output=True, check=True, env={**os.environ, "TZ": "Asia/Tokyo"})
    assert json.loads(done.stdout) == [{"t": "1970-01-01 00:00:00+00:00"}]


@pytest.mark.thorough
def test_long_answers_are_cut_on_the_terminal_alone(run):
    statement = f"from range({ROWS_SHOWN + 1})"
    done = stallmark("sql", run, statement)
    assert len(done.stdout.splitlines()) == 1 + ROWS_SHOWN and "--csv" in done.stderr
    assert len(stallmark("sql", run, statement, "--csv").stdout.splitlines()) == 2 + ROWS_SHOWN
    assert len(json.loads(stallmark("sql", run, statement, "--json").stdout)) == ROWS_SHOWN + 1
    assert not stallmark("sql", run, f"from range({ROWS_SHOWN})").stderr


def test_an_answer_without_rows_has_its_columns(run):
    for form, shown in (((), "second"), (("--csv",), "second"), (("--json",), "[]")):
        assert stallmark("sql", run, "select second from users where false", *form).stdout.strip() == shown


def test_csv_has_every_digit_no_formula_and_nothing_for_null(run):
    [row] = csv.DictReader(io.StringIO(stallmark("sql", run, VALUES, "--csv").stdout))
    assert row["nothing"] == "" and float(row["small"]) == 0.1 + 0.2 and row["price"] == "1.50"
    texts = stallmark("sql", run, "--csv", """select '=1+1' as "=a", '-5' as b, 'a,b' as c""").stdout
    assert list(csv.reader(io.StringIO(texts))) == [["'=a", "b", "c"], ["'=1+1", "-5", "a,b"]]


def test_json_has_an_object_for_each_row_that_every_reader_takes(run):
    [row] = json.loads(stallmark("sql", run, VALUES, "--json").stdout, parse_constant=lambda _: pytest.fail("no JSON"))
    assert row["small"] == 0.1 + 0.2 and row["price"] == 1.5 and row["yes"] is True and row["huge"] == 2**127 - 1
    assert row["nothing"] is row["odd"] is row["inner"]["a"] is None and row["several"] == [1.5, None]
    assert row["day"] == "2026-01-02"


def test_json_names_columns_apart(run):
    done = stallmark("sql", run, "select 1 as a, 2 as a", "--json")
    assert done.exit_code == 3 and "with AS" in done.stderr


def test_one_form_is_chosen(run):
    assert stallmark("sql", run, "select 1", "--csv", "--json").exit_code == 2


@pytest.mark.parametrize("statement", ["copy users to 'x.csv'", "from no_such", "selec 1"])
def test_what_cannot_be_answered_ends_with_3_and_a_sentence(run, tmp_path, monkeypatch, statement):
    monkeypatch.chdir(tmp_path)
    done = stallmark("sql", run, statement)
    assert done.exit_code == 3 and not done.stdout and done.stderr.startswith("Error: ")
    assert not list(tmp_path.iterdir())


def test_a_record_that_fails_while_it_is_read_is_named(run, monkeypatch):
    def fail(*_):
        raise StallmarkError("users.parquet is damaged (x): restore it.")
        yield

    monkeypatch.setattr("stallmark.record.reader.Record.batches", fail)
    done = stallmark("sql", run, "from users")
    assert done.exit_code == 3 and "users.parquet is damaged" in done.stderr

"""Frozen records show what they showed (benchmarks/golden.py), and whatever else they show is told."""

import subprocess
import sys

import pytest
from benchmarks.golden import CASES, GOLDEN, ROOT, differences, digest, page

pytestmark = pytest.mark.thorough


def test_frozen_records_show_what_they_showed():
    done = subprocess.run([sys.executable, "-m", "benchmarks.golden"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_frozen_record_is_asked():
    names = {f"{name}.{kind}" for name in CASES for kind in ("tar.xz", "json")}
    assert {path.name for path in GOLDEN.iterdir()} == names


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        ({"tps": 1000.0}, {"tps": 1000.00000001}, []),
        ({"tps": 1000.0}, {"tps": 1000.001}, [" · tps: 1000.0, now 1000.001"]),
        ({"p99": None}, {"p99": 0.0}, [" · p99: None, now 0.0"]),
        ({"kept": True}, {"kept": 1}, [" · kept: True, now 1"]),
        ({"a": 1, "b": 2}, {"b": 2, "c": 3}, [" · a: gone", " · c: new"]),
        ([[1, 2]], [[1, 2, 3]], ["[0]: 2 items, now 3"]),
        (["one", "two", "three"], ["one", "2", "three"], [": -two", ": +2"]),
    ],
)
def test_a_difference_is_told_by_its_path(before, now, told):
    assert list(differences(before, now)) == told


def test_a_line_of_a_page_is_a_line_that_a_reader_sees():
    html = "<h1>Runs</h1><table><tr><th>tps</th><td title='of all'>4\u00a0000</td></tr></table><script>x</script>"
    assert page(html)["text"] == ["Runs", "tps | [of all] 4 000 |"]


def test_a_value_that_moves_or_changes_in_a_long_list_changes_its_digest():
    values = [float(one) for one in range(20)]
    moved = [values[1], values[0], *values[2:]]
    assert digest({"y": values})["y"]["sum"] == digest({"y": moved})["y"]["sum"] == 190
    assert digest(values) != digest(moved) and digest([*values, None])["known"] == 20

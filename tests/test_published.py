"""The six published experiments: their runs are scenarios, and the page has a table and a chart of each."""

import importlib
import re
from pathlib import Path

import pytest
from benchmarks.published.__main__ import NAMES, PAGE
from benchmarks.published.chart import Claim, about, lines, rising, table

from stallmark.scenarios.read import read_any_scenario

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.parametrize("name", NAMES)
def test_its_runs_are_scenarios(name: str) -> None:
    experiment = importlib.import_module(f"benchmarks.published.{name}")
    for run in experiment.RUNS.values():
        assert read_any_scenario(run.scenario, list(run.settings)).variants


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_its_chart_and_a_reason_for_all_that_does_not_hold(name: str) -> None:
    [made] = re.findall(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", (DOCS / PAGE).read_text(), re.DOTALL)
    [(chart, rows)] = re.findall(rf"!\[{name.upper()}\]\((\S+)\)\n\n(.*)", made, re.DOTALL)
    assert (DOCS / chart).read_text().startswith("<svg")
    verdicts = [[cell.strip() for cell in row.split("|")[-3:-1]] for row in rows.splitlines()[2:]]
    assert len(verdicts) >= 4
    assert all(verdict == "yes" or reason for verdict, reason in verdicts), "each has its reason"


def test_a_reason_stands_only_beside_what_does_not_hold() -> None:
    held, broken = (Claim("flash wins", "yes", "yes", holds, "because") for holds in (True, False))
    *_, first, second = table([held, broken])
    assert first.endswith("| yes |  |") and second.endswith("| **no** | because |")


def test_a_figure_is_theirs_from_half_to_double() -> None:
    assert about(0.5, 1) and about(2, 1) and not about(0.49, 1) and not about(2.1, 1) and not about(-1, 1)
    assert rising([1, 2, 3]) and not rising([1, 1, 2])


def test_the_page_has_twenty_claims_and_of_all_kinds() -> None:
    verdicts = re.findall(r"\| (yes|\*\*no\*\*|cannot be shown) \| [^|]*\|$", (DOCS / PAGE).read_text(), re.MULTILINE)
    assert len(verdicts) >= 20 and len(set(verdicts)) == 3


def test_a_chart_has_a_mark_for_every_known_value() -> None:
    chart = lines("TPS", "per s", ["1", "20"], {"SSD & cache": [1.0, 30.0], "disk": [0.5, None]})
    keys = 2
    assert chart.count("<circle") == keys + 3 and "SSD &amp; cache" in chart
    assert chart.count('fill="none"') == 2, "a line for each"
    assert 'fill="none"' not in lines("TPS", "per s", ["a", "b"], {"disk": [1.0, 2.0]}, joined=False)

"""The list that `stallmark check` prints: exact and statistical apart, cost marks, 80 columns."""

import io

import pytest
from rich.console import Console

from stallmark.cli import check as show_findings
from stallmark.cli import common as command
from stallmark.transactions.brokerage import WORKLOAD
from stallmark.transactions.checks import KEYS, ConditionResult

BROKEN = ConditionResult(
    "balances [all] add up", False, "scan", False, 1_200, 9.94, "id 1; sum 2 | id 2; sum 3 … and 1198 more"
)
KEYLESS = ConditionResult(
    "the keys are there", False, "cheap", False, 2, 0.0, "bank.a: a_pkey is missing | …", "defects"
)
LIKELY = ConditionResult("half of them", True, "cheap", True, 0, 0.0, "")
REFUSED = ConditionResult("an order", False, "scan", None, 0, 0.1, "", refused="no such function (42883)")
LEFT_OUT = ConditionResult("as loaded", True, "scan", None, 0, 0.0, "")


@pytest.fixture
def printed(monkeypatch: pytest.MonkeyPatch):
    """Prints findings on a terminal of 80 columns and returns the lines."""

    def show(*findings: ConditionResult) -> list[str]:
        console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
        for module in (show_findings, command):
            monkeypatch.setattr(module, "out", console)
        show_findings.show_findings(findings)
        return [line.rstrip() for line in console.file.getvalue().splitlines()]

    return show


def test_exact_and_statistical_stand_apart(printed) -> None:
    assert printed(LIKELY, BROKEN) == [
        "Exact",
        "BROKEN   scan  balances [all] add up: 1,200 rows, id 1; sum 2 | id 2; sum 3 …",
        "               and 1198 more (9.9 s)",
        "Statistical, each with the tolerance that its SQL states",
        "holds    cheap half of them (0.0 s)",
    ]


def test_what_was_counted_is_said(printed) -> None:
    assert printed(KEYLESS) == [
        "Exact",
        "BROKEN   cheap the keys are there: 2 defects, bank.a: a_pkey is missing | … (0.0",
        "               s)",
    ]


def test_what_was_left_out_is_listed_and_why(printed) -> None:
    lines = printed(LEFT_OUT)
    assert lines[1] == "left out scan  as loaded"
    assert lines[2].startswith("Left out is what holds for a database as it was loaded")


def test_what_the_server_refused_is_listed_in_its_words(printed) -> None:
    assert printed(REFUSED) == ["Exact", "REFUSED  scan  an order: no such function (42883)"]


def test_every_condition_has_a_line_of_its_own(printed) -> None:
    findings = [ConditionResult(c.name, c.statistical, c.cost, True, 0, 99.9, "") for c in WORKLOAD.conditions]
    findings.insert(0, ConditionResult(KEYS, False, "cheap", True, 0, 9.9, ""))
    assert len(printed(*findings)) == len(findings) + 2

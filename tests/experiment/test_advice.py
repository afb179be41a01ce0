"""What can be run and will not say what is asked is said before."""

from typing import Any

import pytest

from stallmark.experiment.advice import advice
from stallmark.scenarios.model import Scenario

SCENARIO: dict[str, Any] = {
    "name": "small", "title": "", "answers": "", "needs": "", "takes": "", "warm_up": "0s", "measure": "1s",
    "reset": "continue", "variants": [{"name": "only"}],
}  # fmt: skip


def said(users: Any, workload: dict[str, Any], machines: int = 1) -> list[str]:
    return advice(Scenario.model_validate(SCENARIO | {"users": users, "workload": workload}), machines)


@pytest.mark.parametrize(
    ("customers", "users", "enough"),
    [(1_000, 10, None), (1_000, 11, "2,000"), (1_000, [1, 30, 5], "3,000"), (5_000, 50, None), (5_000, 501, "51,000")],
)
def test_users_who_share_few_brokers(customers, users, enough):
    found = said(users, {"name": "brokerage", "scale": {"customers": customers}})
    if enough is None:
        assert found == []
    else:
        [sentence] = found
        most = max(users) if isinstance(users, list) else users
        assert sentence.startswith(f"{most} users share {customers // 100} brokers")
        assert sentence.endswith(f"use at least {enough} customers.")
        assert said(users, {"name": "brokerage", "scale": {"customers": int(enough.replace(",", ""))}}) == []


def test_the_bank_has_a_branch_for_everybody_or_not():
    assert said(100, {"name": "bank", "scale": {"branches": 1}}) == []


@pytest.mark.parametrize(("machines", "words"), [(1, "locality 0.5 has no effect"), (2, None)])
def test_a_locality_of_one_machine(machines, words):
    found = said(1, {"name": "brokerage", "locality": 0.5}, machines)
    assert [sentence.startswith(words) for sentence in found] == ([True] if words else [])

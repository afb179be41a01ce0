"""A search for the ceiling on the embedded engine: levels follow from what was seen, and the record has all of them."""

import json

from support.tool import Tool

from stallmark.record.reader import find_records
from stallmark.stats.ceiling_search import Ceiling, LevelResult, SearchSpec, Verdict, search

RATE = {
    "search": {"of": "rate", "from": 20, "to": 40, "tolerance": "50 %"}, "users": 2, "arrivals": {"kind": "fixed"},
}  # fmt: skip


def test_every_level_is_a_step_and_the_answer_follows_from_them(shared: Tool):
    """Of a rate. tests/end_to_end/test_load_machines.py has a search of users."""
    path = shared.scenario(**RATE, slo={"transactions": ["p90 < 30s"]}, warm_up="1s", measure="4s")
    code, said = shared.run("run", path, "--json")
    assert code == 0, said
    [record] = find_records([shared.newest()])
    made = record.manifest
    assert made.search and (made.search.outcome, made.search.holds) == ("at_least", 40)
    levels = [step.searched for step in made.steps]
    assert [one.level for one in levels if one] == [step.rate for step in made.steps] == [20, 40, 40]
    whole = SearchSpec(made.search.low, made.search.high, made.search.tolerance, False)
    answer = search(whole, [LevelResult(one.level, Verdict(one.verdict)) for one in levels if one])
    assert isinstance(answer, Ceiling) and answer.holds == made.search.holds
    counted = record.table("transactions").to_pylist()
    for step in made.steps:
        done = sum(row["committed"] for row in counted if step.measure_s <= row["second"] < step.end_s)
        assert done >= 60 and step.searched.limits[0].seen <= done * 1.5
    [finding] = [one for one in json.loads(said.splitlines()[-1])["findings"] if one["kind"] == "ceiling_not_reached"]
    assert finding["facts"]["per_s"] > 0
    code, said = shared.run("report", str(shared.newest()), "--fail-if", "ceiling below 3 users")
    assert code == 5, said

"""Claims on two variants in every output: no ratio and no order of those that must not be compared, and the doubt in
those of too few runs, in headline, findings, slide, picture, terminal, JSON, Markdown and `--fail-if`."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.comparisons import one_run, template, with_manifest, with_step
from support.pages import render_comparison, slide, table, verdicts
from support.terminal import printed

from stallmark.analysis.compare.summary import PairKind, Verdict
from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.driver_bound import DriverKind
from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.analysis.finding import ExperimentKind, Finding, caution
from stallmark.analysis.rules import fail_rule
from stallmark.analysis.run import RunSummary
from stallmark.record.devices import DeviceLabel
from stallmark.report.comparison import summary_for_a_ticket
from stallmark.report.experiment import experiment_in_json
from stallmark.report.picture import picture_of
from stallmark.report.renderers import dumped, in_json
from stallmark.report.text import sentence
from stallmark.report.text.steady import comparison_failures

pytestmark = pytest.mark.thorough

NAMES = ["Alpha", "Bravo", "Carol", "Delta", "Echos", "Fokus", "Gamma", "Hotel"]
MIB = 1 << 20
RATIO = re.compile(r"\d×")
SIGNED = re.compile(r"[+−]\d")
ORDER = re.compile(r"\b(beats|behind|raised|lowered|took|gave|most|least|higher|lower|alike|gain)\b")


@dataclass(frozen=True)
class Variant:
    """A variant by what decides whether it may be compared: its reads per transaction (within 5 %, or 20 % of single
    runs), its machine, its driver, an emulated device."""

    tps: float
    runs: int = 3
    reads: float = 1.0
    cores: int = 2
    bound: bool = False
    emulated: bool = False


VARIANT = st.builds(
    Variant,
    tps=st.sampled_from([100.0, 103.0, 250.0, 400.0]),
    runs=st.sampled_from([1, 2, 3]),
    reads=st.sampled_from([0.85, 0.96, 1.0, 1.04, 1.15, 2.0]),
    cores=st.sampled_from([2, 2, 2, 4]),
    bound=st.sampled_from([False, False, False, True]),
)
AXES = st.sampled_from(["variant", "device", "buffer_pool"])


@pytest.fixture(scope="session")
def sound(tmp_path_factory) -> RunSummary:
    return template(tmp_path_factory.mktemp("sound"), measured_s=40, emulated=False, device={"name": "vda"})


def runs_of(sound: RunSummary, variants: list[Variant], axis: str) -> list[RunSummary]:
    runs = []
    for number, (name, one) in enumerate(zip(NAMES, variants, strict=False)):
        for repeat in range(1, one.runs + 1):
            run = one_run(sound, name, one.tps * (1, 0.98, 1.03)[(repeat + number) % 3], len(runs) + 1, repeat)
            step: dict[str, Any] = {"reads_per_transaction": one.reads, "cpu_busy_share": 0.2}
            step |= {"foreign_cpu_share": 0.0, "foreign_io_share": 0.0, "invalid": [], "steadiness": None}
            step["driver_bound"] = [caution(DriverKind.EXECUTOR_CPU, machine=0, share=0.97)] if one.bound else []
            step["emulated_roles"] = ("data",) if one.emulated else ()
            if axis == "device":
                step["device"] = DeviceLabel(f"disk {name}", one.emulated)
            if axis == "buffer_pool":
                step |= {"buffer_pool_bytes": (number + 1) * 16 * MIB, "buffer_pool_share": None}
            run = with_step(run, **step)
            variant = {"name": name, "buffer_pool": f"{number + 1}MiB" if axis == "buffer_pool" else None}
            machine = run.manifest.machine.changed(cores=one.cores)
            runs.append(replace(with_manifest(run, variant=variant, machine=machine), growth_share=0.0))
    return runs


def summary_of(runs: list[RunSummary]) -> ExperimentSummary:
    records: Any = [SimpleNamespace(manifest=run.manifest, folder=run.folder, kind=run.manifest.kind) for run in runs]
    return summarise(records, lambda *_: runs)


def comparable(a: Variant, b: Variant, axis: str) -> bool:
    """Return whether two variants may be compared: the oracle."""
    off = abs(a.reads - b.reads) / max(a.reads, b.reads)
    alike = axis == "buffer_pool" or off <= (0.05 if min(a.runs, b.runs) > 1 else 0.2)
    return alike and a.cores == b.cores and not a.bound and not b.bound and a.emulated == b.emulated


def held_together(one: Finding, variants: list[str]) -> Iterator[tuple[str, str, float | None, Verdict]]:
    """Yield every two variants that a finding holds against each other, with the ratio and the verdict it gives."""
    facts = one.facts
    match one.kind:
        case ExperimentKind.AGAINST_FIRST:
            yield from ((facts["first"], name, ratio, verdict) for name, ratio, verdict in facts["others"])
        case ExperimentKind.POOL | ExperimentKind.POOL_GAIN:
            a, b = (variants[size // (16 * MIB) - 1] for size in facts["pools_bytes"])
            yield a, b, facts["ratio"], facts["verdict"]
        case ExperimentKind.DEVICES | ExperimentKind.VARIANTS | ExperimentKind.VARIANTS_ALIKE:
            yield *facts["variants"], facts["ratio"], facts["verdict"]
        case PairKind.DIFFERENCE:
            yield facts["a"], facts["b"], facts["ratio"], facts["verdict"]
        case PairKind.NO_DIFFERENCE:
            yield facts["a"], facts["b"], facts["ratio"], Verdict.NO_DIFFERENCE
        case PairKind.INDICATIVE:
            yield facts["a"], facts["b"], facts["ratio"], Verdict.INDICATIVE
        case PairKind.NOT_COMPARABLE:
            yield facts["a"], facts["b"], None, Verdict.NOT_COMPARABLE
        case _:
            assert "ratio" not in facts, f"{one.kind} gives a ratio: say here which variants it is of"


def words(drawn: str) -> str:
    texts = ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}text")
    return re.sub(r"\s+", " ", " ".join(element.text or "" for element in texts))


def findings_of(experiment: ExperimentSummary) -> list[Finding]:
    judged = [pair.finding for pair in experiment.comparison.pairs] if experiment.comparison else []
    return [*([experiment.answer] if experiment.answer else []), *experiment.findings, *judged]


@settings(max_examples=60)  # with fewer some conclusions are never drawn
@given(variants=st.lists(VARIANT, min_size=2, max_size=8), axis=AXES)
def test_every_output_claims_of_a_pair_what_its_runs_allow(sound, variants, axis):
    made = dict(zip(NAMES, variants, strict=False))
    experiment = summary_of(runs_of(sound, variants, axis))
    every = findings_of(experiment)
    for one in every:
        said = sentence(one)
        for a, b, ratio, verdict in held_together(one, list(made)):
            may = comparable(made[a], made[b], axis)
            assert (verdict is Verdict.NOT_COMPARABLE, ratio is None) == (not may, not may), said
            few = min(made[a].runs, made[b].runs) < 3
            assert (verdict is Verdict.INDICATIVE) is (may and few)
            assert not few or not may or "ndicative" in said
            assert verdict is not Verdict.NO_DIFFERENCE or "o difference shown" in said
            clause = said
            if one.kind is ExperimentKind.AGAINST_FIRST:
                clause = said.partition(f"“{b}”")[2].partition("“")[0]
            assert may or not (RATIO.search(clause) or ORDER.search(clause) or SIGNED.search(clause)), said
    apart = {(a, b) for a, b in combinations(made, 2) if not comparable(made[a], made[b], axis)}
    assert {tuple(pair) for pair in experiment.not_comparable} == apart
    the_rest = [one for one in every if any(held_together(one, list(made)))]

    drawn, shown = words(slide(experiment)), " ".join(printed(table(experiment), 400).split())
    picture = picture_of(experiment)
    assert [row.apart for row in picture.rows] == [(NAMES[0], name) in apart for name in made]
    assert drawn.count("not comparable") >= sum(row.apart for row in picture.rows)
    assert experiment.answer and " ".join(sentence(experiment.answer).split()) in drawn
    assert len(RATIO.findall(drawn)) == len(RATIO.findall(sentence(experiment.answer)))
    listed = [sentence(one) for one in the_rest if one is not experiment.answer or one in experiment.findings]
    assert len(RATIO.findall(shown)) <= sum(len(RATIO.findall(said)) for said in listed)

    told = json.loads(dumped(experiment_in_json(experiment)))
    assert told["answer"]["sentence"] == sentence(experiment.answer)
    assert {tuple(pair) for pair in told["not_comparable"]} == apart


@given(variants=st.lists(VARIANT, min_size=2, max_size=3), axis=AXES)
def test_compare_claims_the_same(sound, variants, axis):
    made = dict(zip(NAMES, variants, strict=False))
    runs = runs_of(sound, variants, axis)
    found = compare_runs(runs)
    for pair in found.pairs:
        may = comparable(made[pair.a], made[pair.b], axis)
        assert pair.claim.comparable is may and (pair.claim.ratio is None) is not may
        alone = replace(found, pairs=[pair])
        ticket, shown = summary_for_a_ticket(alone), printed(verdicts(alone), 300)
        page = render_comparison(summary_of(runs), alone)
        told = json.loads(dumped(in_json(alone)))["pairs"][0]
        figures = [
            told["primary"],
            *told["others"],
            *(one[key] for one in told["transactions"] for key in ("rate", "latency")),
        ]
        given = ("ratio", "low", "high", "p", "p_adjusted", "detectable")
        if may:
            assert SIGNED.search(ticket) and told["primary"]["ratio"]
            continue
        assert "not comparable" in ticket.lower() and "NOT COMPARABLE" in shown
        assert [one[name] for one in figures for name in given if one[name] is not None] == []
        heading = f"{pair.b} against {pair.a}, every figure as a ratio"
        assert not SIGNED.search(ticket) and not SIGNED.search(shown) and heading not in page
        for rule in ("worse", "better", "not better", "not within 5 %"):
            assert comparison_failures(fail_rule(rule, of_runs=False), alone)


def test_two_that_may_each_be_compared_with_the_first_and_not_with_each_other_are_not_ranked(sound):
    apart = [Variant(100, 1), Variant(250, 1, reads=0.85), Variant(400, 1, reads=1.15)]
    for axis in ("variant", "device"):
        experiment = summary_of(runs_of(sound, apart, axis))
        assert experiment.not_comparable == [["Bravo", "Carol"]]
        for one in findings_of(experiment):
            pairs = {(a, b) for a, b, *_ in held_together(one, NAMES)}
            assert not pairs & {("Bravo", "Carol"), ("Carol", "Bravo")}
    many = [*apart, *(Variant(110 + number, 1) for number in range(5))]
    answer = summary_of(runs_of(sound, many, "variant")).answer
    assert not answer.facts["ranked"] and "between them" not in sentence(answer)
    alike = [apart[0], *many[3:], Variant(400, 1), Variant(250, 1)]
    assert summary_of(runs_of(sound, alike, "variant")).answer.facts["ranked"]


def test_an_emulated_device_beside_a_real_one_has_no_ratio(sound):
    experiment = summary_of(runs_of(sound, [Variant(100), Variant(400, emulated=True)], "variant"))
    assert experiment.answer.kind is PairKind.NOT_COMPARABLE and experiment.not_comparable == [["Alpha", "Bravo"]]


def test_the_verdict_on_a_declared_latency_is_not_put_to_the_throughput(sound):
    """A ratio of throughput has the verdict on throughput, whatever the scenario declared as its primary metric."""
    runs = runs_of(sound, [Variant(100), Variant(100), Variant(400)], "variant")
    declared = [with_manifest(run, scenario=run.manifest.scenario.changed(primary="latency")) for run in runs]
    slow = {"Alpha": 50.0, "Bravo": 5.0, "Carol": 50.0}
    changed = [
        with_step(run, latency_mean_ms=slow[run.steps[0].variant] * (1 + 0.01 * run.manifest.repeat))
        for run in declared
    ]
    experiment = summary_of(changed)
    assert [pair.verdict for pair in experiment.comparison.pairs] == [Verdict.BETTER, Verdict.NO_DIFFERENCE]
    told = {name: verdict for name, _, verdict in experiment.answer.facts["others"]}
    assert told == {"Bravo": Verdict.NO_DIFFERENCE, "Carol": Verdict.BETTER}

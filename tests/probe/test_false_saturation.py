"""Every kind of finding on probes alone beside probes of which its sentence would be false, and is not told.

A case gives the findings of two sets of probes that differ in one thing: with the first the kind is told, with the
second, of which its sentence would be false, it is not.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.probes import READ, STREAM, probe, step, write_probe
from support.wording import kinds_in

from stallmark.analysis.finding import Finding
from stallmark.analysis.probe_comparison import ProbeKind
from stallmark.probe.summary import SaturationKind, _not_at_device, overall_finding, saturation, summarise_probes
from stallmark.record.manifest.storage import ProbeResult, ProbeStep
from stallmark.record.reader import find_records

GIB = 1 << 30
WRITE = replace(READ, name="8k-random-write", operation="write")


def rising(*iops: float, **more: Any) -> list[ProbeStep]:
    """Steps of 1, 2, 4 … outstanding I/Os."""
    return [step(2**place, rate, **more) for place, rate in enumerate(iops)]


def judged(*steps: ProbeStep) -> list[Finding]:
    return [saturation(steps[0].pattern, steps).finding]


def with_tail(p99: float) -> list[Finding]:
    return judged(step(4, 1000, p99=20), step(8, 1000, p99=40), step(16, 1000, p99=p99))


def summarised(*results: ProbeResult, names: Sequence[str] = ("a", "b"), is_complete: bool = True) -> list[Finding]:
    """The findings and cautions of an experiment of probes."""
    with TemporaryDirectory() as folder:
        for number, (result, name) in enumerate(zip(results, names, strict=False), 1):
            write_probe(Path(folder), name, result, number, is_complete=is_complete)
        found = summarise_probes(find_records([Path(folder)]))
        return [*found.findings, *found.cautions]


def counted(share: float) -> list[Finding]:
    """Of a probe of which the device counted this share of the bytes."""
    one = step(8, 1000)
    return summarised(probe(replace(one, device_bytes=round(share * one.bytes))))


Case = Callable[[], Iterable[Any]]
CASES: dict[ProbeKind | SaturationKind, tuple[Case, Case]] = {
    ProbeKind.NOT_ISSUED: (lambda: judged(step(8, 900, issued=0.5)), lambda: judged(step(8, 900))),
    SaturationKind.ONE_STEP: (lambda: judged(step(8, 900)), lambda: judged(step(8, 900), step(16, 910))),
    SaturationKind.NOT_SATURATED: (lambda: judged(*rising(100, 200)), lambda: judged(*rising(100, 110))),
    SaturationKind.SATURATED: (lambda: judged(*rising(100, 110)), lambda: judged(*rising(100, 200))),
    SaturationKind.COLLAPSED_RATE: (lambda: judged(*rising(500, 390)), lambda: judged(*rising(500, 410))),
    SaturationKind.COLLAPSED_TAIL: (lambda: with_tail(1500), lambda: with_tail(200)),
    SaturationKind.OVERALL: (
        lambda: summarised(probe(*rising(100, 200), *rising(100, 200, pattern=WRITE))),
        lambda: summarised(probe(*rising(100, 200))),
    ),
    SaturationKind.AGAINST_FIRST: (
        lambda: summarised(probe(step(8, 1000)), probe(step(8, 2000))),
        lambda: summarised(probe(step(8, 1000)), probe(step(8, 2000, issued=0.5))),
    ),
    SaturationKind.OF_PROBE: (
        lambda: summarised(probe(step(8, 1000)), probe(step(8, 2000))),
        lambda: summarised(probe(step(8, 1000))),
    ),
    SaturationKind.NOT_REPEATED: (
        lambda: summarised(*[probe(step(8, 1000))] * 2),
        lambda: summarised(*[probe(step(8, 1000))] * 2, names=("a", "a")),
    ),
    SaturationKind.EMULATED_AND_REAL: (
        lambda: summarised(probe(step(8, 1000)), probe(step(8, 1000), emulated=True)),
        lambda: summarised(probe(step(8, 1000)), probe(step(8, 1000))),
    ),
    SaturationKind.FEW_IOS: (
        lambda: summarised(probe(replace(step(1, 50), histogram=()))),
        lambda: summarised(probe(replace(step(1, 200), histogram=()))),
    ),
    SaturationKind.NOT_AT_DEVICE: (lambda: counted(0.5), lambda: counted(0.95)),
    SaturationKind.INCOMPLETE: (
        lambda: summarised(probe(step(8, 1000)), is_complete=False),
        lambda: summarised(probe(step(8, 1000))),
    ),
    SaturationKind.SMALL_FILE: (
        lambda: summarised(probe(step(8, 1000)), probe(step(8, 1000), emulated=True)),
        lambda: summarised(probe(step(8, 1000), file_bytes=99 * GIB), probe(step(8, 1000), emulated=True)),
    ),
}


@pytest.mark.parametrize("kind", [pytest.param(kind, id=str(kind)) for kind in CASES])
def test_a_sentence_that_would_be_false_is_not_told(kind):
    true, false = (kinds_in(list(case())) for case in CASES[kind])
    assert kind in true and kind not in false


def test_the_last_step_is_not_given_what_another_one_gained():
    [found] = judged(*rising(100, 110, 90))
    assert (found.kind, found.facts["outstanding"], found.facts["last"]) == (SaturationKind.SATURATED, 1, 4)
    assert found.facts["gain"] == pytest.approx(-0.1)


def test_of_several_patterns_only_those_of_several_steps_are_called_saturated_or_not():
    patterns = [rising(100, 200), [step(8, 900, pattern=WRITE)], [step(8, 900, pattern=STREAM, issued=0.5)]]
    facts = overall_finding([saturation(steps[0].pattern, steps) for steps in patterns]).facts
    assert (facts["saturated"], facts["not_saturated"]) == ([], [READ.title])
    assert (facts["one_step"], facts["not_issued"]) == ([WRITE.title], [STREAM.title])


def test_probes_are_compared_at_the_most_outstanding_that_both_kept_up():
    first = summarised(probe(*rising(100, 200, 400)), probe(*rising(110, 220), step(4, 300, issued=0.6)))[0]
    assert (first.kind, first.facts["outstanding"], first.facts["iops"]) == (SaturationKind.AGAINST_FIRST, 2, 220)


@pytest.mark.parametrize(
    ("share", "caught"),
    [(0.0, True), (0.12, True), (0.89, True), (0.9, False), (1.0, False), (7.0, False), (None, False)],
)
def test_bytes_that_a_device_did_not_count_are_told(share, caught):
    whole = step(8, 1000)
    counted: ProbeStep = replace(whole, device_bytes=None if share is None else round(share * whole.bytes))
    found = _not_at_device([counted, replace(whole, device_bytes=whole.bytes)])
    assert found == ([(counted, pytest.approx(share, abs=1e-6))] if caught else [])

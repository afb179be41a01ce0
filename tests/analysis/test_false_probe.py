"""Every kind of finding on probes beside probes of which its sentence would be false, and is not told.

A case gives the findings of two sets of probes that differ in one thing: with the first the kind is told, with the
second, of which its sentence would be false, it is not.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from support.probes import NOISE, READ, STREAM, probe, step, write_probe
from support.wording import kinds_in

from stallmark.analysis.finding import Finding
from stallmark.analysis.probe_comparison import (
    Achieved,
    AgainstProbe,
    ProbeKind,
    array_memory_caution,
    compare_with_probe,
    drift,
)
from stallmark.probe.summary import SaturationKind, overall_finding, saturation, summarise_probes
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


def drifted(
    iops: float = 1000, outstanding: int = 8, dram_bytes: int | None = None, issued: float = 1.0, **of_after: Any
) -> list[Finding]:
    """The drift from 1,000 I/Os per second with 8 outstanding."""
    before = probe(step(8, 1000, scatter=NOISE, issued=issued))
    after = probe(step(outstanding, iops, scatter=NOISE[::-1], issued=issued), **of_after)
    return [drift(before, after, dram_bytes).finding]


def set_against(
    *steps: ProbeStep, per_s: float = 1000.0, ms: float = 4.0, dram_bytes: int | None = None, **of_probe: Any
) -> list[AgainstProbe]:
    """A database's reads on a real device against a probe."""
    achieved = Achieved(per_s, per_s * 8192 / 1e6, ms, 8192)
    steps = steps or (step(1, 200), step(8, 1200))
    return [compare_with_probe(probe(*steps, **of_probe), achieved, emulated=False, dram_bytes=dram_bytes)]


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
    ProbeKind.FITS_DRAM: (
        lambda: [array_memory_caution(probe(step(8, 1000), file_bytes=GIB), GIB)],
        lambda: [array_memory_caution(probe(step(8, 1000), file_bytes=GIB), GIB - 1)],
    ),
    SaturationKind.SMALL_FILE: (
        lambda: summarised(probe(step(8, 1000)), probe(step(8, 1000), emulated=True)),
        lambda: summarised(probe(step(8, 1000), file_bytes=99 * GIB), probe(step(8, 1000), emulated=True)),
    ),
    ProbeKind.MIXED_DEVICES: (lambda: drifted(emulated=True), drifted),
    ProbeKind.DIFFERENT_PROBES: (lambda: drifted(how="psync"), drifted),
    ProbeKind.NO_COMMON_STEP: (lambda: drifted(outstanding=4), drifted),
    ProbeKind.DRIFT_HIDDEN: (lambda: drifted(dram_bytes=GIB), lambda: drifted(dram_bytes=GIB - 1)),
    ProbeKind.SAME: (drifted, lambda: drifted(issued=0.5)),
    ProbeKind.DRIFTED: (lambda: drifted(700), lambda: drifted(905)),
    ProbeKind.DRIFT_UNKNOWN: (lambda: drifted(905), drifted),
    ProbeKind.OTHER_DEVICE: (lambda: set_against(emulated=True), set_against),
    ProbeKind.NO_RANDOM_READS: (lambda: set_against(step(8, 1200, pattern=STREAM)), set_against),
    ProbeKind.BEYOND_PROBE: (lambda: set_against(ms=20.0), set_against),
    ProbeKind.BELOW_PROBE: (
        lambda: set_against(step(4, 200), step(8, 250), ms=0.2),
        lambda: set_against(step(1, 200), step(8, 250), ms=0.2),
    ),
    ProbeKind.ACHIEVED: (set_against, lambda: set_against(step(1, 200), step(8, 1200, issued=0.5))),
    ProbeKind.RAW_MAY_BE_SLOWER: (lambda: set_against(dram_bytes=GIB), lambda: set_against(dram_bytes=GIB - 1)),
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


def test_a_machine_that_could_not_issue_them_neither_proves_nor_hides_a_drift():
    for iops in (700, 1000):
        [found] = drifted(iops, issued=0.5)
        assert (found.kind, found.facts["why"].kind) == (ProbeKind.DRIFT_HIDDEN, ProbeKind.NOT_ISSUED)
    kept_up = [step(8, 1000, scatter=NOISE), step(16, 2000, scatter=NOISE)]
    found = drift(probe(*kept_up), probe(kept_up[0], step(16, 1400, scatter=NOISE, issued=0.5)))
    assert found.finding.kind == ProbeKind.SAME and [row.outstanding for row in found.rows] == [8]


def test_raw_storage_is_not_known_where_the_machine_could_not_issue_as_many():
    [found] = set_against(step(8, 1200, issued=0.5))
    assert found.raw_iops is None and found.finding.kind == ProbeKind.NOT_ISSUED


def test_probes_are_compared_at_the_most_outstanding_that_both_kept_up():
    first = summarised(probe(*rising(100, 200, 400)), probe(*rising(110, 220), step(4, 300, issued=0.6)))[0]
    assert (first.kind, first.facts["outstanding"], first.facts["iops"]) == (SaturationKind.AGAINST_FIRST, 2, 220)

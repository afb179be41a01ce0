"""Every kind of finding on probes around runs beside probes of which its sentence would be false, and is not told.

A case gives the findings of two sets of probes that differ in one thing: with the first the kind is told, with the
second, of which its sentence would be false, it is not.
"""

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from support.probes import NOISE, STREAM, probe, step
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
from stallmark.record.manifest.storage import ProbeStep

GIB = 1 << 30


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
CASES: dict[ProbeKind, tuple[Case, Case]] = {
    ProbeKind.NOT_ISSUED: (lambda: set_against(step(8, 1200, issued=0.5)), set_against),
    ProbeKind.FITS_DRAM: (
        lambda: [array_memory_caution(probe(step(8, 1000), file_bytes=GIB), GIB)],
        lambda: [array_memory_caution(probe(step(8, 1000), file_bytes=GIB), GIB - 1)],
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

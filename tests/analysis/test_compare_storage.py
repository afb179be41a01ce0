"""Comparisons that the storage itself forbids: emulated beside real, and an array that drifted."""

from dataclasses import replace

import pytest
from support.comparisons import QUIET, made, with_manifest, with_step
from support.findings import facts_of
from support.flash_records import probe_result

from stallmark.analysis.compare.summary import CheckKind, PairKind, ReasonKind
from stallmark.analysis.compare.verdicts import compare_runs
from stallmark.analysis.environment_cautions import ArrayKind, array_cautions


def probed(run, before, after):
    return with_manifest(run, probes={"before": before, "after": after})


def judged(runs):
    [pair] = compare_runs(runs).pairs
    return pair, {check.kind: check for check in pair.checks}


@pytest.mark.thorough
def test_an_emulated_device_beside_a_real_one_is_no_verdict(sound):
    runs = made(sound, **QUIET)
    runs = [run if run.manifest.variant.name == "A" else with_step(run, emulated_roles=()) for run in runs]
    pair, checks = judged(runs)
    assert pair.verdict == "not_comparable" and pair.cause is None
    assert checks[CheckKind.DEVICES].reason.kind is ReasonKind.DEVICES_DIFFER
    assert checks[CheckKind.DEVICES].reason.facts == {"role": "data"}


def test_two_emulated_devices_are_one(sound):
    pair, checks = judged(made(sound, **QUIET))
    assert pair.verdict == "better" and checks[CheckKind.DEVICES].passed and CheckKind.STORAGE not in checks


def test_storage_that_stayed_as_it_was(sound):
    pair, checks = judged([probed(run, probe_result(1000), probe_result(1010)) for run in made(sound, **QUIET)])
    assert pair.verdict == "better" and checks[CheckKind.STORAGE].passed
    assert checks[CheckKind.STORAGE].found.facts == {"compared": 10, "mixed_up": [], "others": []}


def test_storage_that_changed_during_a_run_is_not_compared(sound):
    runs = [probed(run, probe_result(1000), probe_result(1000)) for run in made(sound, **QUIET)]
    runs[3] = probed(runs[3], probe_result(1000), probe_result(600))
    pair, checks = judged(runs)
    assert pair.verdict == "not_comparable" and checks[CheckKind.STORAGE].passed is False
    [change] = checks[CheckKind.STORAGE].reason.facts["changes"]
    assert checks[CheckKind.STORAGE].reason.kind is ReasonKind.STORAGE_CHANGED and change["between"] == ["04-B"]
    assert [facts["between"] for facts in facts_of(array_cautions(runs), ArrayKind.DRIFTED)] == [["04-B"]]


def test_an_array_that_did_not_come_back_is_not_compared(sound):
    """A at the beginning and A at the end: each as before after its run, and yet another array."""
    runs = [probed(run, probe_result(1000), probe_result(1000)) for run in made(sound, **QUIET)]
    runs[4] = probed(runs[4], probe_result(700), probe_result(700))
    pair, checks = judged(runs)
    [change] = checks[CheckKind.STORAGE].reason.facts["changes"]
    assert pair.verdict == "not_comparable" and change["between"] == ["03-A", "05-A"]


def test_probes_that_scatter_are_said_to_tell_nothing_and_hold_nothing_up(sound):
    runs = [probed(run, probe_result(1000), probe_result(1000)) for run in made(sound, **QUIET)]
    runs[0] = probed(runs[0], probe_result(1000, spread=0.9), probe_result(1000, spread=0.9))
    pair, checks = judged(runs)
    assert pair.verdict == "better" and checks[CheckKind.STORAGE].passed is None
    assert facts_of(pair.cautions, PairKind.CHECKS_UNKNOWN) == [{"checks": [CheckKind.STORAGE]}]


def test_probes_that_the_arrays_memory_could_hold_prove_nothing(sound):
    def on_array(run, **array):
        probes = [probe_result(rate, emulated=False) for rate in (1000, 1010)]
        real = with_manifest(with_step(run, emulated_roles=()), devices={}, array=array)
        return probed(real, *probes)

    runs = made(sound, **QUIET)
    known = [on_array(run, dram_bytes=8 << 30) for run in runs]
    _, checks = judged(known)
    assert checks[CheckKind.STORAGE].passed is None
    assert not facts_of(array_cautions(known), ArrayKind.SMALL_PROBE)
    unknown = [on_array(run) for run in runs]
    _, checks = judged(unknown)
    assert checks[CheckKind.STORAGE].passed
    assert facts_of(array_cautions(unknown), ArrayKind.SMALL_PROBE) == [{"file_bytes": 256 << 20}]


def test_a_probe_of_a_real_device_is_not_for_a_run_on_an_emulated_one(sound):
    real = probe_result(1000, emulated=False)
    pair, _ = judged([probed(run, real, real) for run in made(sound, **QUIET)])
    assert pair.verdict == "not_comparable"
    reason = pair.finding.facts["reasons"][0]
    assert reason.kind == ReasonKind.PROBE_OF_OTHER_DEVICE
    assert reason.facts == {"run": "e1/01-A", "run_emulated": True}


def test_preconditioning_that_did_not_get_there_is_said(sound):
    [run] = made(replace(sound, title="A"), A=[400.0])
    recorded = {"steady": False, "size_bytes": 1 << 30, "round_s": 5.0, "rounds_ms": [2.0, 5.0, 9.0]}
    facts = {"run": run.title, "file_bytes": 1 << 30, "rounds": 3, "write_ms": [2.0, 9.0]}
    found = array_cautions([with_manifest(run, precondition=recorded)])
    assert facts_of(found, ArrayKind.NOT_PRECONDITIONED) == [facts]

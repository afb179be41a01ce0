"""Cautions about an array that was reconfigured between variants."""

import pytest
from support.comparisons import made, template, with_manifest
from support.findings import kinds_of
from support.manifests import on

from stallmark.analysis.array_cautions import ArrayKind, array_cautions

SDA = on({"name": "sda"})
BEFORE = {"command": ["set-cache"], "output": "", "seconds": 1.0}


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A and B on a real array, B reconfigured before."""
    a, b = made(template(tmp_path_factory.mktemp("pair"), measured_s=40), A=[400.0], B=[480.0])
    return with_manifest(a, devices=SDA), with_manifest(b, devices=SDA, hook=BEFORE)


def test_of_an_array_whose_dram_and_flash_nobody_named_it_is_said(pair):
    a, b = pair
    assert kinds_of(array_cautions(pair)) == [ArrayKind.SIZE_UNKNOWN]
    assert not list(array_cautions([a, with_manifest(b, array={"dram_bytes": 8 << 30})]))
    assert not list(array_cautions([a, with_manifest(b, hook=None)]))
    emulated = SDA | {"data": {"name": "loop0", "emulated_array": {"block_device": True, "spindles": 4}}}
    assert not list(array_cautions([with_manifest(run, devices=emulated) for run in pair]))


def test_an_experiment_that_ended_early_says_before_what_and_why(pair):
    a, _ = pair
    because = "The command before 'C' failed (exit code 1); it said: pool 0\nis full"
    [found] = array_cautions([with_manifest(a, ended={"before": "C", "because": because})])
    assert found.kind == ArrayKind.ENDED
    assert found.facts == {"before": "C", "because": because.replace("\n", " ")}

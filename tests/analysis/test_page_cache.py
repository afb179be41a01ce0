"""Cautions on storage whose reads the page cache may have answered: said where it is so, and nowhere else."""

from dataclasses import replace

import pytest
from support.manifests import a_manifest, changed
from support.pages import render
from support.probes import probe, step
from support.synthetic import Truth, make_run

from stallmark.analysis.cautions import PageCacheKind, page_cache_cautions, page_cache_cautions_of_runs
from stallmark.analysis.experiment import summarise
from stallmark.record.manifest.storage import Device, Devices, DirectIo, EmulatedArray, Probes
from stallmark.record.manifest.workload import Load, RawPlan, Step
from stallmark.record.reader import Record

THROUGH = DirectIo("through", "ext4, data=journal")
LOOP = DirectIo("unknown", "ext4", "loop0")
HIDDEN = DirectIo("unknown", "fuse.bindfs")
PAST = DirectIo("past", "xfs")


@pytest.mark.parametrize(
    ("outcome", "kind"),
    [
        (THROUGH, PageCacheKind.IN_CACHE),
        (LOOP, PageCacheKind.ON_LOOP),
        (HIDDEN, PageCacheKind.NOT_SEEN),
        (PAST, None),
        (None, None),
    ],
)
def test_each_outcome_has_its_caution(outcome, kind):
    found = list(page_cache_cautions([("/a", outcome), ("/b", outcome), ("/a", outcome)]))
    assert [one.kind for one in found] == ([] if kind is None else [kind])
    assert all(one.facts["places"] == ["/a", "/b"] for one in found)


def raw(folder: str | None, outcome: DirectIo | None) -> Load:
    plan = RawPlan(
        pattern="8k-random-read",
        operation="read",
        order="random",
        blocks={8192: 1.0},
        outstanding=1,
        size_bytes=2**25,
        folder=folder,
        direct_io=outcome,
    )
    return Load(name="backup", kind="raw", counts=(1,), raw=plan)


def test_data_raw_loads_and_probes_of_runs_are_named_by_their_places():
    manifest = a_manifest(
        devices=Devices(data=Device(name="vda"), folders={"data": "/data"}, direct_io=THROUGH),
        steps=(Step(name="steady", users=0, begin_s=0, measure_s=0, end_s=10),),
        loads=(raw(None, THROUGH), raw("/backup", LOOP), raw("/other", PAST)),
        probes=Probes(before=replace(probe(step(1, 100)), direct_io=HIDDEN)),
    )
    found = {one.kind: one.facts["places"] for one in page_cache_cautions_of_runs([manifest, manifest])}
    assert found == {
        PageCacheKind.IN_CACHE: ["/data"],
        PageCacheKind.ON_LOOP: ["/backup"],
        PageCacheKind.NOT_SEEN: ["/mnt/array"],
    }


def test_an_emulated_array_has_a_time_of_its_own():
    device = Device(emulated_array=EmulatedArray(spindles=1))
    manifest = a_manifest(devices=Devices(data=device, folders={"data": "/data"}, direct_io=THROUGH))
    assert not list(page_cache_cautions_of_runs([manifest]))


@pytest.mark.thorough
@pytest.mark.parametrize(("outcome", "told"), [(THROUGH, True), (PAST, False)])
def test_the_page_of_runs_tells_that_reads_may_have_come_from_memory(tmp_path, outcome, told):
    folder = make_run(tmp_path / "run", Truth(emulated=False, device={"name": "vda"}, measured_s=10))
    devices = Devices(data=Device(name="vda"), folders={"data": "/srv/data"}, direct_io=outcome)
    page = render(summarise([Record(changed(folder, devices=devices))]))
    assert ("Direct I/O in /srv/data went through this system’s page cache" in page) is told

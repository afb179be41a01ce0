"""Probes as shown: figures as measured, marks where they belong, and EMULATED wherever it is."""

from dataclasses import replace

import pytest
from support.html_page import Page, figures_of
from support.manifests import a_manifest
from support.probes import NOISE, STREAM, of_disks, probe, step, write_probe
from support.terminal import printed

from stallmark.analysis.experiment import common_kind
from stallmark.analysis.finding import caution
from stallmark.analysis.probe_comparison import Achieved, compare_with_probe, drift
from stallmark.errors import StallmarkError
from stallmark.probe.document import probe_document
from stallmark.probe.summary import ProbeExperiment, SaturationKind, summarise_probes
from stallmark.record.manifest.storage import ProbeResult
from stallmark.record.reader import find_records
from stallmark.record.writer import RecordWriter
from stallmark.report.renderers import in_terminal, render
from stallmark.report.sections.environment import database_reads_table, drift_table
from stallmark.report.text import sentence


@pytest.fixture(scope="module")
def results() -> list[ProbeResult]:
    disks = [*of_disks(4, 5), step(1, 90, pattern=STREAM, scatter=NOISE)]
    falling = [step(n, rate) for n, rate in ((1, 900), (2, 1500), (4, 800))]
    return [probe(*disks, emulated=True), probe(*falling, emulated=True)]


@pytest.fixture(scope="module")
def experiment(results, tmp_path_factory) -> ProbeExperiment:
    folder = tmp_path_factory.mktemp("probes")
    write_probe(folder, "disks", results[0], 1)
    write_probe(folder, "<flash>", results[1], 2)
    return summarise_probes(find_records([folder]))


def test_probes_of_one_place_are_told_apart(results, tmp_path):
    for number, started in enumerate(("2026-11-22T08:00:00", "2026-11-22T09:00:00", "2026-11-22T09:00:30"), 1):
        write_probe(tmp_path, "/mnt/a", replace(results[0], started=started), number)
    found = summarise_probes(find_records([tmp_path]))
    assert caution(SaturationKind.NOT_REPEATED) not in found.cautions
    names = [run.variant for run in found.runs]
    assert names == ["/mnt/a, 2026-11-22 08:00", "/mnt/a, 2026-11-22 09:00, 02", "/mnt/a, 2026-11-22 09:00, 03"]


def test_it_says_first_what_one_has_of_the_other(experiment):
    first = experiment.findings[0]
    assert first.kind == SaturationKind.AGAINST_FIRST and first.facts["probe"] == "<flash>"
    assert (first.facts["iops"], first.facts["first_iops"]) == pytest.approx((800, 457), abs=1)
    of_flash = next(one for one in experiment.findings if one.facts.get("found") and one.facts["probe"] == "<flash>")
    assert (of_flash.facts["found"].kind, of_flash.facts["found"].facts["outstanding"]) == (SaturationKind.SATURATED, 2)
    assert caution(SaturationKind.NOT_REPEATED) in experiment.cautions


def test_each_pattern_of_each_probe_has_its_charts_and_its_sentence(experiment):
    page = render(probe_document(experiment))
    assert "<flash>" not in page and "&lt;flash&gt;" in page
    assert set(figures_of(page)) == {
        "chart-probe-8k-random-read-rate", "chart-probe-8k-random-read-latency",
        "chart-probe-8k-random-read-histogram-1", "chart-probe-8k-random-read-histogram-2",
        "chart-probe-256k-sequential-read-rate", "chart-probe-256k-sequential-read-latency",
        "chart-probe-256k-sequential-read-histogram-1",
    }  # fmt: skip
    shown = printed(in_terminal(probe_document(experiment).brief))
    assert max(map(len, shown.splitlines())) <= 80
    for saturation in experiment.runs[0].saturations:
        words = sentence(saturation.finding)
        assert f"disks: {words}" in Page(page).text and words in " ".join(shown.split())


def test_probes_and_runs_are_not_shown_together(experiment, results, tmp_path):
    write_probe(tmp_path, "disks", results[0])
    RecordWriter(tmp_path / "run", a_manifest(experiment="e", sequence=2)).close()
    with pytest.raises(StallmarkError, match="name those of one kind"):
        common_kind(find_records([tmp_path]))


def test_tables_of_drift_and_of_what_a_database_had_keep_the_reasons(results):
    before = probe(step(1, 200, scatter=NOISE), step(8, 1000, scatter=NOISE))
    found = drift(before, probe(step(1, 200, scatter=NOISE), step(8, 500, scatter=NOISE)))
    table = drift_table([(("disks",), found), (("flash", "disks"), drift(before, results[0]))])
    assert [str(row[-1]) for row in table.rows] == ["same", "drifted", "inconclusive"]
    assert table.notes[0].startswith("during disks: ") and table.notes[1].startswith("from flash to disks: ")
    rows = [
        ("a", compare_with_probe(before, Achieved(100, 0.8, 20, 8192), emulated=emulated)) for emulated in (False, True)
    ]
    shown = database_reads_table(rows)
    assert shown.rows[0][-1] != shown.rows[1][-1] == "–"
    assert [note[:40] for note in shown.notes] == ["a: The database had 100 reads per second"]
    hidden = compare_with_probe(before, Achieved(100, 0.8, 20, 8192), emulated=False, dram_bytes=2**33)
    assert database_reads_table([("a", hidden), ("b", hidden)]).notes == [sentence(hidden.caution)]

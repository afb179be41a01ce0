"""Records of several data versions are read, and not compared: by whom they were, and why not."""

from pathlib import Path

import pytest
from support.command_line import stallmark
from support.comparisons import QUIET, made, only, template, with_manifest
from support.manifests import a_manifest, changed
from support.read_once import kept_summaries, read_once
from support.synthetic import Brokerage, Truth, make_run
from support.synthetic_loads import alone_and_together, make_loads_run

from stallmark.analysis.compare.settings import DifferenceKind
from stallmark.analysis.compare.summary import CheckKind, Verdict
from stallmark.analysis.experiment import ExperimentSummary, summarise
from stallmark.analysis.finding import DataKind, mixed_versions
from stallmark.analysis.loads import summarise_loads
from stallmark.record.manifest import read_manifest
from stallmark.record.manifest.workload import Load
from stallmark.record.reader import find_records
from stallmark.report.text import sentence

__all__ = ["kept_summaries", "read_once"]
pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("read_once")]


def of_version(folder: Path, version: int | None) -> Path:
    workload = read_manifest(folder).workload
    return changed(folder, workload=workload.changed(version=version))


def _of_version(load: Load, version: int) -> Load:
    assert load.workload
    return load.changed(workload=load.workload.changed(version=version))


def summary(*folders: Path) -> ExperimentSummary:
    return summarise(find_records(folders))


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Path]:
    """A, A and B of one experiment on the brokerage, which went on when the data had another version."""
    folder = tmp_path_factory.mktemp("resumed")
    tps = ((200, "A", 1), (202, "A", 2), (260, "B", 1))
    made = [
        make_run(
            folder / f"{number:02d}-{name}",
            Truth(tps=rate, variant=name, repeat=repeat, sequence=number, noise=0.01, measured_s=40, warm_up_s=12,
                  brokerage=Brokerage()),
        )
        for number, (rate, name, repeat) in enumerate(tps, 1)
    ]  # fmt: skip
    for run, version in zip(made, (2, 2, 3), strict=True):
        of_version(run, version)
    return made


def test_which_versions_there_are():
    def some(*versions: int | None, name: str = "brokerage"):
        return [a_manifest(workload={"name": name, "version": version}) for version in versions]

    assert mixed_versions([]) is None and mixed_versions(some(2, 2, None)) is None
    assert mixed_versions([*some(2), *some(1, name="bank")]) is None
    found = mixed_versions([*some(3, None, 2, 3), *some(1, name="bank")])
    assert found and found.kind is DataKind.MIXED_VERSIONS
    assert found.facts == {"workload": "brokerage", "versions": [2, 3]}


def test_every_run_is_shown_and_none_compared(runs):
    found = summary(*runs)
    assert [len(run.steps) for run in found.runs] == [1, 1, 1] and all(step.result_tps > 0 for step in found.steps)
    assert [one.kind for one in found.findings] == [DataKind.MIXED_VERSIONS] and found.answer == found.findings[0]
    assert found.comparison and [one.verdict for one in found.comparison.pairs] == [Verdict.NOT_COMPARABLE]
    same = summary(*runs[:2])
    assert DataKind.MIXED_VERSIONS not in [one.kind for one in same.findings]


def test_an_older_version_is_read(runs):
    older = summary(*runs[:2])
    assert [run.manifest.workload.version for run in older.runs] == [2, 2] and older.findings


def test_a_comparison_says_what_differs(tmp_path):
    sound = template(tmp_path, measured_s=40)
    versions = {"A": 2, "B": 3}
    runs = [with_manifest(run, variant={"name": run.steps[0].variant}) for run in made(sound, **QUIET)]
    newer = [
        with_manifest(run, workload=run.manifest.workload.changed(version=versions[run.steps[0].variant]))
        for run in runs
    ]
    pair = only(newer)
    assert pair.verdict == Verdict.NOT_COMPARABLE and [one.kind for one in pair.failed] == [CheckKind.SETTINGS]
    [difference] = pair.failed[0].reason.facts["differences"]
    assert difference.kind is DifferenceKind.WORKLOAD_VERSION
    assert difference.facts == {"workload": "bank", "a": 2, "b": 3}
    assert sentence(difference) in sentence(pair.finding)
    unknown = [with_manifest(run, workload=run.manifest.workload.changed(version=None)) for run in runs[1::2]]
    assert only([*runs[::2], *unknown]).verdict == Verdict.BETTER, "what a record does not say is not held against it"


def test_a_curve_of_memory_is_of_one_version(tmp_path):
    truth = {"measured_s": 20, "device": {"name": "sda"}, "emulated": False}
    sizes = [5, 10, 20, 40, 80]
    folders = [
        make_run(
            tmp_path / f"{size}",
            Truth(tps=100 + size, pool_bytes=size << 20, variant=f"{size}", sequence=number, **truth),
        )
        for number, size in enumerate(sizes, 1)
    ]
    assert len(summary(*folders).curves) == 1
    of_version(folders[-1], 2)
    found = summary(*folders)
    assert found.curves == [] and [one.kind for one in found.findings] == [DataKind.MIXED_VERSIONS]


def test_several_loads_are_of_one_version_each(tmp_path):
    steps = alone_and_together({"mail": (60.0, 30.0), "bank": (200.0, 80.0)})
    folders = [make_loads_run(tmp_path / name, steps, name, sequence=number) for number, name in enumerate("ab", 1)]
    assert DataKind.MIXED_VERSIONS not in [one.kind for one in summarise_loads(find_records(folders)).whole.findings]
    for folder, mail in zip(folders, (1, 9), strict=True):
        versions = {"bank": 1, "mail": mail}
        loads = read_manifest(folder).loads
        changed(folder, loads=[_of_version(load, versions[load.name]) if load.workload else load for load in loads])
    found = summarise_loads(find_records(folders))
    assert [one.kind for one in found.whole.findings] == [DataKind.MIXED_VERSIONS]
    assert found.whole.answer and found.whole.answer.facts == {"workload": "mail", "versions": [1, 9]}
    assert DataKind.MIXED_VERSIONS in [one.kind for one in found.loads["mail"].findings]
    assert DataKind.MIXED_VERSIONS not in [one.kind for one in found.loads["bank"].findings]


@pytest.mark.parametrize("command", ["plan", "whatif"])
def test_a_plan_and_a_prediction_are_refused_with_the_reason(runs, command):
    refused = stallmark(command, *runs)
    assert refused.exit_code == 3 and refused.stderr.count("Error:") == 1
    assert "built by data version 2 and 3, with different rows and inputs" in " ".join(refused.stderr.split())
    assert stallmark(command, *runs[:2]).exit_code == 0


def test_a_report_and_a_comparison_say_the_reason(runs, tmp_path):
    for command in (("report", *runs, "--out", tmp_path / "r.html"), ("compare", *runs, "--out", tmp_path / "c.html")):
        shown = stallmark(*command)
        assert shown.exit_code == 0, shown.output
        page = next(one for one in command if str(one).endswith(".html"))
        for text in (shown.stdout, Path(page).read_text()):
            assert "built by data version 2 and 3, with different rows and inputs" in " ".join(text.split()), command

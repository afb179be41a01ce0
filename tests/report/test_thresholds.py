"""Why thresholds make a command fail."""

from dataclasses import replace

from support.manifests import changed
from support.synthetic import Truth, make_run

from stallmark.analysis.experiment import summarise
from stallmark.record.reader import Record
from stallmark.report.junit import THRESHOLDS, experiment_cases
from stallmark.report.sections.validity import failures


def why(folder, *thresholds: str, truth: Truth | None = None) -> list[str]:
    run = make_run(folder / "run", truth or Truth(measured_s=20))
    changed(run, scenario={"name": "limits", "thresholds": list(thresholds)})
    return failures(summarise([Record(run)]))


def test_nothing_is_said_of_thresholds_that_hold(tmp_path):
    assert why(tmp_path, "tps > 1", "errors < 1 %") == []


def test_the_threshold_that_was_not_kept_is_named_with_what_was_measured(tmp_path):
    [text] = why(tmp_path, "tps > 1", "p95 < 0.001ms")
    assert text.startswith("p95 < 0.001ms was not met (") and text.endswith(" ms in cap 64 MiB)")


def test_of_an_invalid_step_it_is_said_why_nothing_is_known(tmp_path):
    [text] = why(tmp_path, "tps > 1", truth=replace(Truth(measured_s=20), foreign_reads_per_second=500))
    assert text.startswith("tps > 1 is not known in cap 64 MiB: other programs used the storage")


def test_what_was_not_measured_is_not_known(tmp_path):
    [text] = why(tmp_path, "cpu < 50 %", truth=Truth(measured_s=20, off=("host",)))
    assert text == "cpu < 50 % is not known in cap 64 MiB: it was not measured there"


def test_of_several_loads_the_reason_names_the_load(tmp_path):
    run = make_run(tmp_path / "run", Truth(measured_s=20))
    changed(run, scenario={"name": "limits", "thresholds": ["tps > 1", "p95 < 0.001ms"]})
    cases = [case for case in experiment_cases(summarise([Record(run)]), "mail") if case.group == THRESHOLDS]
    assert [(case.name, case.passed) for case in cases] == [("mail: tps > 1", True), ("mail: p95 < 0.001ms", False)]
    assert cases[1].reason.startswith("mail: p95 < 0.001ms was not met (")

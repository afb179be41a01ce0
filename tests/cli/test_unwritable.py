"""Files that cannot be written, and summaries that cannot be shown, are refused in a sentence before the work."""

import os
import re
import sys
from dataclasses import replace

import pytest
from support.command_line import stallmark
from support.record_kinds import collected, probed, queries, sizing
from support.small_disks import fill, small_disk
from support.synthetic import Truth, make_run

from stallmark.report import kinds
from stallmark.report.kinds import find_kind


@pytest.fixture
def unwritable(tmp_path):
    """A folder that takes no file; root may write into every folder but those of the kernel."""
    if os.getuid():
        (folder := tmp_path / "unwritable").mkdir(mode=0o500)
        return folder
    if not os.path.isdir("/proc/self"):
        pytest.skip("root may write everywhere")
    return "/proc/self"


@pytest.fixture
def run(tmp_path):
    make_run(tmp_path / "01-run", Truth(tps=300, measured_s=10))
    return tmp_path / "01-run"


OPTIONS = {
    "run": ["--markdown FILE.md", "--junit FILE.xml", "--junit NEW/limits.xml"],
    "report": ["--out FILE.html", "--summary FILE.svg", "--markdown FILE.md", "--junit FILE.xml"],
    "compare": ["--out FILE.html", "--markdown FILE.md", "--junit FILE.xml --fail-if worse"],
    "export": ["--csv NEW", "--flat FILE.csv"],
    "characterise": ["--page FILE.html"],
    "size": ["--out FILE.html", "--markdown FILE.md"],
    "probe": ["--out NEW"],
    "profile": ["--out NEW --from FILE"],
}
CASES = [(command, options) for command, all_options in OPTIONS.items() for options in all_options]


@pytest.mark.skipif(sys.platform == "win32", reason="rights of folders are Unix'")
@pytest.mark.parametrize(("command", "options"), CASES)
def test_what_cannot_be_written_is_refused_before_the_work(command, options, unwritable, run, tmp_path):
    subjects = {"run": ["demo"], "size": [run, run], "probe": [tmp_path], "profile": []}
    named = options.replace("NEW", f"{unwritable}/new").replace("FILE", f"{unwritable}/file").split()
    before = sorted(tmp_path.rglob("*"))
    result = stallmark(command, *subjects.get(command, [run]), *named)
    assert result.exit_code == 3, result.output
    assert f"Nothing can be written to {unwritable}" in " ".join(result.output.split())
    assert sorted(tmp_path.rglob("*")) == before


FILES = [
    case for case in CASES if "FILE" in case[1] and "--markdown" not in case[1] and case[0] not in ("export", "profile")
]


@pytest.mark.parametrize(("command", "options"), [*FILES, ("new", "FILE.yaml")])
def test_standard_output_is_refused_where_a_file_is_needed(command, options, run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    subjects = {"run": ["demo"], "size": [run, run], "new": []}
    named = re.sub(r"FILE\.\w+", "-", options).split()
    result = stallmark(command, *subjects.get(command, [run]), *named)
    assert result.exit_code == 2 and "needs a file" in result.stderr, result.output
    assert os.listdir(tmp_path) == [run.name]


REPORTED = [("report", options) for options in OPTIONS["report"] if "--markdown" not in options]


@pytest.mark.thorough
@pytest.mark.parametrize(("command", "options"), [*REPORTED, ("export", "--flat FILE.csv"), ("new", "FILE.yaml")])
def test_nothing_of_a_file_is_left_on_a_full_disk(command, options, run, tmp_path):
    with small_disk(tmp_path / "disk", 1) as disk:
        fill(disk)
        subjects = [] if command == "new" else [run]
        result = stallmark(command, *subjects, *options.replace("FILE", f"{disk}/file").split())
        assert result.exit_code == 3 and "No space left" in result.stderr, result.output
        assert os.listdir(disk) == ["filler"]


@pytest.mark.skipif(sys.platform == "win32", reason="rights of folders are Unix'")
def test_a_scenario_of_probes_is_refused(unwritable):
    result = stallmark("run", "saturation", "--out", f"{unwritable}/new")
    assert result.exit_code == 3, result.output
    assert f"Nothing can be written to {unwritable}" in " ".join(result.output.split())


# A summary that there cannot be


@pytest.mark.thorough
@pytest.mark.parametrize(("make", "name"), [(queries, ""), (probed, ""), (collected, "profile"), (sizing, "candidate")])
def test_a_summary_that_there_cannot_be_is_refused_before_the_analysis(tmp_path, monkeypatch, make, name):
    make(tmp_path)
    monkeypatch.setattr(kinds, "find_kind", lambda name: replace(find_kind(name), summarise=None))
    picture = tmp_path / "slide.svg"
    said = stallmark("report", tmp_path / name, "--summary", picture)
    assert said.exit_code == 2 and "no summary" in " ".join(said.stderr.split()) and not picture.exists()

"""`stallmark report`: what is refused before anything is analysed."""

import pytest
from support.command_line import stallmark
from support.record_kinds import collected, probed, queries, sizing

ANALYSES = (
    "stallmark.analysis.experiment.summarise",
    "stallmark.analysis.probe.experiment.summarise_probes",
    "stallmark.analysis.profile.summary.summarise_profile",
    "stallmark.sizing.summary.summarise_candidate",
)


@pytest.mark.parametrize(("make", "name"), [(queries, ""), (probed, ""), (collected, "profile"), (sizing, "candidate")])
def test_a_summary_that_there_cannot_be_is_refused_before_the_analysis(tmp_path, monkeypatch, make, name):
    make(tmp_path)
    for place in ANALYSES:
        monkeypatch.setattr(place, None)
    picture = tmp_path / "slide.svg"
    said = stallmark("report", tmp_path / name, "--summary", picture)
    assert said.exit_code == 3 and "no summary" in " ".join(said.stderr.split()) and not picture.exists()

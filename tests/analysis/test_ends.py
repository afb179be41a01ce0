"""Experiments that ended before all their variants were run: before which, and why."""

from support.manifests import a_manifest

from stallmark.analysis.finding import EndKind, early_ends


def test_it_is_said_before_which_variant_and_why():
    because = "The command before 'C' failed (it ended with code 1); it said: pool 0\nis full"
    [found] = early_ends([a_manifest(), a_manifest(ended={"before": "C", "because": because})])
    assert found.kind is EndKind.EXPERIMENT
    assert found.facts == {"before": "C", "said": because.replace("\n", " ")}


def test_why_is_not_known_of_one_that_was_killed():
    [found] = early_ends([a_manifest(ended={"before": "C"})])
    assert found.facts == {"before": "C", "said": None}

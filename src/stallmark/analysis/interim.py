"""Sentences within the analysis, for what does not return findings yet: it goes with its last caller."""

from importlib import import_module

from stallmark.analysis.finding import Finding


def sentence(finding: Finding) -> str:
    """Return the sentence of a finding."""
    return str(import_module("stallmark.report.text").sentence(finding))

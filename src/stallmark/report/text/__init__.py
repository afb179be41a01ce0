"""The wording of findings and verdicts."""

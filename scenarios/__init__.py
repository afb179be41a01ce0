"""Scenario files, and the model of such files."""

"""Scenario files, and the model of what such a file may say."""

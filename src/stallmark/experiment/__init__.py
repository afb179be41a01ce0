"""Run a scenario: prepare every variant, drive it, record it."""

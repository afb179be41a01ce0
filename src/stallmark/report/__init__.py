"""Reports of an experiment: one HTML file, and a table in the terminal.

Everything shown comes from an `ExperimentSummary`; nothing is measured or judged here.
"""

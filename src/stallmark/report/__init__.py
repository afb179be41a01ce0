"""Reports of an experiment: one HTML file, and a table in the terminal.

Everything shown comes from an `ExperimentSummary`; nothing is measured or judged here.
"""

from stallmark.report.page import write_report
from stallmark.report.terminal import table

__all__ = ["table", "write_report"]

"""From run records to what the report shows. Pure functions: the records are all they know."""

from stallmark.driver.analysis.experiment import summarise
from stallmark.driver.analysis.summary import ExperimentSummary

__all__ = ["ExperimentSummary", "summarise"]

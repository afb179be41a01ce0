"""Words as a terminal of some width shows them."""

import io
from typing import Any

from rich.console import Console

from stallmark.analysis.experiment import ExperimentSummary
from support.pages import table


def printed(what: Any, width: int = 80) -> str:
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(what)
    return console.export_text()


def show(experiment: ExperimentSummary, width: int) -> str:
    """The table of an experiment."""
    return printed(table(experiment), width)

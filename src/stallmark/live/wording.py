"""The sentences of the live page."""

from stallmark import format
from stallmark.report.text import experiment

TITLE = "Stallmark live"
LOST = (
    "Stallmark does not answer. It was killed, its machine is suspended, or the network connection is lost. All "
    "figures below are the last ones received."
)
STOP = "End the experiment?"
STOP_MEANS = (
    "The current run is closed as incomplete, the server's settings are restored, and complete runs are kept. "
    "stallmark run --resume makes the others."
)
EMULATED = (
    "A device of this experiment is emulated: Stallmark injects its service times. The figures show how the database "
    "responds to such a device; they do not measure a product."
)
STOP_BUTTON, STOP_IT, GO_ON = "Stop …", "End the experiment", "Continue measuring"
NO_LINES = "The charts begin with the load."
CHARTS = "Lines over time of the runs that are ticked below, one chart for each quantity"
RUNS, VARIANT, DRAWN = "Runs", "variant", "drawn"
RUNS_NOTE = (
    "Means of the seconds measured, for the current run up to now. The report's figures are over complete checkpoint "
    "cycles, and may differ."
)
TRANSACTIONS, TRANSACTION = "Transactions of this step", "transaction"
TRANSACTION_COLUMNS = ("committed per second", "mean, ms", "95th percentile, ms", "rolled back", "failed")
BADGES = {
    "running": "live",
    "between": "between runs",
    "silent": "not live",
    "complete": "complete",
    "ended": "ended early",
}
"""The word beside the title, by the state of the experiment."""
_METHOD = "All runs are drawn from the moment at which measuring began. The warm-ups of the current run are shaded. "
EVERY_SECOND, MEANS_OF = f"{_METHOD}Every second is drawn.", f"{_METHOD}Each point is a mean of {{}} seconds."
EMULATED_ALL, EMULATED_PART = "EMULATED", "EMULATED in part"
"""The stamp in the charts, by the runs that are drawn."""
CUT = "cut short"
ERRORS = ("Errors", "failed attempts of this run")


def run(number: int, planned: int, variant: str, repeat: int, repeats: int) -> str:
    """Return the place of a run: "Run 3 of 8: large cache, repeat 1 of 2"."""
    again = f", repeat {repeat} of {repeats}" if repeats > 1 else ""
    return f"Run {number} of {planned}: {variant}{again}"


def name(variant: str, repeat: int, repeats: int, again: bool) -> str:
    """Return the name of a run: "large cache, repeat 2"."""
    return variant + (" again" if again else "") + (f", repeat {repeat}" if repeats > 1 and not again else "")


def complete(planned: int, report: str | None) -> str:
    """Return the sentence for a complete experiment, with the place of its report."""
    return f"All {planned} runs are complete." + (f" The report is {report}." if report else "")


def end_sentence(because: str | None, whole: int, planned: int, command: str | None) -> str:
    """Return the sentence for an experiment that ended early, with the command for its missing runs."""
    reason = f": {because.rstrip('.')}" if because else ""
    others = f" {experiment.go_on(command=command)}" if command and whole < planned else ""
    return f"It ended early{reason}. {whole} of {planned} runs are complete.{others}"


def quiet(silent_s: float) -> str:
    return f"nothing was written for {format.duration(silent_s)}"

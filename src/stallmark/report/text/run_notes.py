"""The wording of what happened in a run beside its figures."""

from collections.abc import Mapping

from stallmark.analysis.finding import Kind
from stallmark.analysis.read.run_notes import RunKind
from stallmark.format import listed, plural
from stallmark.report.text import says

SENTENCES: Mapping[Kind, str] = {
    RunKind.SAMPLES_MISSED: "{collector}: {samples:,} samples were left out, because earlier ones took too long.",
    RunKind.SAMPLES_INCOMPLETE: "{collector}: {lacks}.",
    RunKind.CLOCKS_APART: (
        "The clocks of the load machines were compared to within {apart_ms:,.0f} ms only: a second of the record is "
        "not exactly the same second on all of them."
    ),
    RunKind.ARRIVALS_WAITED: (
        "{transactions:,} arrivals were due and not yet started when the run ended: the users fell behind."
    ),
    RunKind.UNFINISHED: "{transactions:,} transactions did not end, even cancelled: their outcome is unknown.",
    RunKind.EXECUTORS_SILENT: (
        "{executors:,} executor processes had to be killed at the end: what their users did last is unknown."
    ),
    RunKind.MAINTENANCE_FAILED: "The {maintenance} beside the users failed: {server_said:as_reason}.",
}


@says(RunKind.COLLECTOR_OUTAGE)
def _(collector: str, since_s: float, until_s: float | None, error: str) -> str:
    until = "to the end" if until_s is None else f"to {until_s:.0f} s"
    return f"{collector}: nothing measured from {since_s:.0f} s {until}, because {error}."


@says(RunKind.QUERIES_LEFT)
def _(load: str, waiting: int, given_up: int) -> str:
    begun = (
        f"{waiting:,} were due and not yet started when their rate changed or the run ended: the streams fell behind"
    )
    ended = f"{given_up:,} were given up under way, and are in no rate"
    return f"Queries of {load}: {'; '.join([begun] * bool(waiting) + [ended] * bool(given_up))}."


@says(RunKind.DEFERRED_WAITED)
def _(transactions: int, cleared_by_next: bool) -> str:
    then = ": the next run begins by clearing away what they leave open" if cleared_by_next else ""
    return (
        f"{transactions:,} transactions of the background sessions were not due yet, or not begun, when the run "
        f"ended{then}."
    )


@says(RunKind.EXECUTORS_LOST)
def _(executors: int, within_s: float, unreported: Mapping[str, int] | None) -> str:
    lost = "1 executor process was" if executors == 1 else f"{executors:,} executor processes were"
    said = f"{lost} lost, with what {'its' if executors == 1 else 'their'} users did in about the last {within_s:g} s"
    if unreported is None:
        return f"{said}: how many commits that were is not known, because the database was not counted afterwards."
    some = [f"{number:,} {plural(name)}" for name, number in unreported.items()]
    return f"{said}: the database counts {listed(some)} more than were reported."

"""Predictions of what other read times would give."""

from stallmark import format
from stallmark.analysis.what_if import WhatIf, WhatIfs
from stallmark.report.document import Brief, Shown, Words
from stallmark.report.table import Rows, Table, number, word
from stallmark.report.text import cause as words
from stallmark.report.text import sentence
from stallmark.report.text.terms import term


def what_ifs_in_brief(some: WhatIfs) -> Brief:
    notes = [
        *(Words(sentence(one), "apart") for one in some.left_out),
        Words(words.tests_of_models(some)),
        Words(words.PREDICTED_IN_BRIEF, "quiet"),
    ]
    return [*([Words(_about(one), "", one.variant or one.step), Shown(_predictions(one))] for one in some.found), notes]


def _about(prediction: WhatIf) -> str:
    users = f"{prediction.users} user{'s' * (prediction.users != 1)}"
    runs = f"mean of {prediction.runs} runs" if prediction.runs > 1 else "1 run"
    reads = f"reads of {format.number(prediction.read_ms)} ms by the {prediction.read_source}"
    emulated = ", EMULATED device" if prediction.emulated else ""
    return f", {users}: {format.number(prediction.tps)} TPS with {reads} ({runs}{emulated})"


def _predictions(prediction: WhatIf) -> Table:
    return Rows(prediction.predictions).table(
        number("if reads took", lambda found: f"{format.number(found.read_ms)} ms"),
        number("TPS", lambda found: found.tps),
        number("range", lambda found: f"{format.number(found.low)}–{format.number(found.high)}"),
        number("change", lambda found: found.tps / prediction.tps - 1, format.signed),
        word("limit then", lambda found: term(found.limit) if found.limit else "differs by run"),
    )

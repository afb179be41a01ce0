"""Predictions of what other read times would give."""

from stallmark import format
from stallmark.analysis.prediction import WhatIf, WhatIfs
from stallmark.report.document import Brief, Shown, Words
from stallmark.report.table import Rows, Table, number, word
from stallmark.report.text import cause as words
from stallmark.report.text import sentence
from stallmark.report.text.terms import term


def predictions_in_brief(what_ifs: WhatIfs) -> Brief:
    notes = [
        *(Words(sentence(finding), "apart") for finding in what_ifs.left_out),
        Words(words.tests_of_models(what_ifs)),
        Words(words.PREDICTED_IN_BRIEF, "quiet"),
    ]
    return [
        *(
            [Words(_about(what_if), "", what_if.variant or what_if.step), Shown(_predictions(what_if))]
            for what_if in what_ifs.found
        ),
        notes,
    ]


def _about(prediction: WhatIf) -> str:
    users = f"{prediction.users} user{'s' * (prediction.users != 1)}"
    runs = f"mean of {prediction.runs} runs" if prediction.runs > 1 else "1 run"
    reads = f"reads of {format.number(prediction.read_ms)} ms by the {prediction.read_source}"
    emulated = ", EMULATED device" if prediction.emulated else ""
    return f", {users}: {format.number(prediction.tps)} TPS with {reads} ({runs}{emulated})"


def _predictions(prediction: WhatIf) -> Table:
    return Rows(prediction.predictions).table(
        number("if reads took", lambda row: f"{format.number(row.read_ms)} ms"),
        number("TPS", lambda row: row.tps),
        number("range", lambda row: f"{format.number(row.low)}–{format.number(row.high)}"),
        number("change", lambda row: row.tps / prediction.tps - 1, format.signed),
        word("limit then", lambda row: term(row.limit) if row.limit else "differs by run"),
    )

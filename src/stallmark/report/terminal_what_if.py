"""Predictions, in a terminal of any width from about 50 columns."""

from rich.console import Group, RenderableType
from rich.text import Text

from stallmark import format
from stallmark.analysis.what_if import WhatIf, WhatIfs
from stallmark.report.table import InTerminal, Rows, Table, number, word
from stallmark.report.text import cause as words
from stallmark.report.text import sentence
from stallmark.report.text.cause import tests_of_models
from stallmark.report.text.terms import term


def what_ifs(some: WhatIfs) -> RenderableType:
    parts: list[RenderableType] = []
    for one in some.found:
        parts += [_title(one), InTerminal(_predictions(one)), Text("")]
    parts += [Text(sentence(one), style="yellow") for one in some.left_out]
    parts.append(Text(tests_of_models(some)))
    parts.append(Text(words.PREDICTED_IN_BRIEF, style="dim"))
    return Group(*parts)


def _title(one: WhatIf) -> Text:
    users = f"{one.users} user{'s' * (one.users != 1)}"
    runs = f"mean of {one.runs} runs" if one.runs > 1 else "1 run"
    return Text.assemble(
        (one.variant or one.step, "bold"),
        f", {users}: {format.number(one.tps)} TPS with reads of {format.number(one.read_ms)} ms "
        f"by the {one.read_source} "
        f"({runs}{', EMULATED device' if one.emulated else ''})",
    )


def _predictions(one: WhatIf) -> Table:
    return Rows(one.predictions).table(
        number("if reads took", lambda found: f"{format.number(found.read_ms)} ms"),
        number("TPS", lambda found: found.tps),
        number("range", lambda found: f"{format.number(found.low)}–{format.number(found.high)}"),
        number("change", lambda found: found.tps / one.tps - 1, format.signed),
        word("limit then", lambda found: term(found.limit) if found.limit else "differs by run"),
    )

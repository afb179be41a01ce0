"""A comparison for a ticket: Markdown that every tracker shows."""

from collections.abc import Iterator

from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison
from stallmark.escape import markdown
from stallmark.report.comparison.tables import every_figure
from stallmark.report.table import in_markdown
from stallmark.report.text import comparison as words
from stallmark.report.text import sentence
from stallmark.report.text.terms import term


def summary_for_a_ticket(found: ComparisonSummary, load: str = "") -> str:
    """Return verdicts, figures and the evidence behind them, of one of several loads under its name. No line ends with
    a break."""
    lines = ["## " + markdown(f"Stallmark: {f'{load}, ' if load else ''}{_title(found)}"), ""]
    for pair in found.pairs:
        lines += [*_pair(pair), ""]
    lines += [f"- {markdown(sentence(one))}" for one in found.left_out]
    for side in found.sides:
        about = f" ({', '.join(map(sentence, side.differs))})" if side.differs else ""
        emulated = ", EMULATED device" if side.emulated else ""
        runs = ", ".join(map(markdown, side.runs))
        lines.append(f"- **{markdown(side.name)}**{markdown(about)}{emulated}: {runs}")
    return "\n".join(lines).rstrip()


def _title(found: ComparisonSummary) -> str:
    others = [side.name for side in found.sides if side.name != found.baseline]
    return f"{', '.join(others)} against {found.baseline}"


def _pair(pair: PairComparison) -> Iterator[str]:
    yield f"**{term(pair.verdict).capitalize()}.** {markdown(sentence(pair.finding))}"
    yield ""
    yield from in_markdown(every_figure(pair))
    yield ""
    for check in pair.checks:
        mark = {True: "holds", False: "**FAILED**", None: "not known"}[check.passed]
        yield f"- {words.CHECKS[check.kind][0]}: {mark} ({markdown(sentence(check.found))})"
    for caution in pair.cautions:
        yield f"- Caution: {markdown(sentence(caution))}"
    if pair.cause:
        yield f"- Cause: {markdown(sentence(pair.cause.finding))}"
        for caution in pair.cause.cautions:
            yield f"- Caution: {markdown(sentence(caution))}"
    yield f"- {markdown(words.method(pair))}"

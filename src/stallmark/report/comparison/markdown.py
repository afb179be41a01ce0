"""A comparison for a ticket: Markdown that every tracker shows."""

from collections.abc import Iterator

from stallmark.analysis.compare.summary import ComparisonSummary, PairComparison, Ratio
from stallmark.format import percent
from stallmark.report.text import comparison as words
from stallmark.report.text import sentence
from stallmark.stats.thresholds import CONFIDENCE


def summary_for_a_ticket(found: ComparisonSummary) -> str:
    """Verdicts, figures and what stands behind them; no line ends with a break."""
    lines = ["## " + _plain(f"Stallmark: {_title(found)}"), ""]
    for pair in found.pairs:
        lines += [*_pair(pair), ""]
    lines += [f"- {_plain(sentence(one))}" for one in found.left_out]
    for side in found.sides:
        about = f" ({', '.join(map(sentence, side.differs))})" if side.differs else ""
        emulated = ", EMULATED device" if side.emulated else ""
        runs = ", ".join(map(_plain, side.runs))
        lines.append(f"- **{_plain(side.name)}**{_plain(about)}{emulated}: {runs}")
    return "\n".join(lines).rstrip()


def _title(found: ComparisonSummary) -> str:
    others = [side.name for side in found.sides if side.name != found.baseline]
    return f"{', '.join(others)} against {found.baseline}"


def _pair(pair: PairComparison) -> Iterator[str]:
    yield f"**{pair.verdict.capitalize()}.** {_plain(sentence(pair.finding))}"
    yield ""
    yield f"| | {_cell(pair.a)} | {_cell(pair.b)} | change | {percent(CONFIDENCE)} interval | p |"
    yield "|---|---:|---:|---:|---:|---:|"
    for one in (pair.primary, *pair.others):
        if one.a is not None:
            yield _row(one, bold=one is pair.primary)
    for types in pair.transactions:
        for one in (types.rate, types.latency):
            if one.a is not None:
                yield _row(one, name=f"{types.transaction}: {one.name}")
    yield ""
    for check in pair.checks:
        mark = {True: "holds", False: "**FAILED**", None: "not known"}[check.passed]
        yield f"- {words.CHECKS[check.kind][0]}: {mark} ({_plain(sentence(check.found))})"
    for caution in pair.cautions:
        yield f"- Caution: {_plain(sentence(caution))}"
    if pair.cause:
        yield f"- Cause: {_plain(sentence(pair.cause.finding))}"
    yield f"- {_plain(sentence(pair.method))} Order: {pair.order}. {words.adjustment(pair)}"


def _row(one: Ratio, bold: bool = False, name: str = "") -> str:
    title = f"{name}, {one.unit}" if name else words.named(one)
    cells = [
        _cell(f"**{title}**" if bold else title),
        words.value(one, one.a),
        words.value(one, one.b),
        words.change(one),
        words.reach(one),
        words.p_value(one.p_adjusted),
    ]
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


def _plain(text: str) -> str:
    """Names come from people: none of them may become mark-up."""
    return text.replace("<", "&lt;").replace("\n", " ")

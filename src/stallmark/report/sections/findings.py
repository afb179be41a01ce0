"""The findings of a report, and the verdicts on its pairs."""

from collections.abc import Sequence

from stallmark.analysis.compare.summary import PairComparison
from stallmark.analysis.finding import Finding
from stallmark.report.document import Block, Bullets, Section, Verdict, Words
from stallmark.report.text import reading, sentence
from stallmark.report.text.terms import term


def section(findings: Sequence[Finding], *verdicts: Block) -> Section:
    texts = [sentence(finding) for finding in findings]
    listed: list[Block] = [Bullets(texts, "findings", numbered=True)] if texts else []
    return Section("findings", "Findings", [*verdicts, *listed] or [Words(reading.NO_FINDING)])


def verdict(pair: PairComparison) -> Verdict:
    notes = [*pair.cautions, *([pair.cause.finding] if pair.cause else [])]
    return Verdict(pair.verdict, term(pair.verdict), sentence(pair.finding), [sentence(note) for note in notes])

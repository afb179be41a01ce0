"""The reads of each statement of SQL of a user's own, as the plan cache counts them.

A statement is a batch for the server, which knows it by its text: the driver sends ours with @P1, @P2 … in the places
of parameters, after a list of their types.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property

from stallmark.collectors.base import STATEMENT_READS, Row, statement_names
from stallmark.collectors.mssql.collector import MssqlCollector, statement
from stallmark.engines.base import Engine
from stallmark.engines.mssql.odbc import text as constant
from stallmark.engines.mssql.session import as_sent
from stallmark.transactions.workload import StatementFacts

_DECLARED = re.compile(r"(?:\((?:@P\d+ \w+(?:\([\w, ]+\))?,?)+\))?")
_NAME = r"(?:[\w$#]+|\[[^\]]+\])"
_CALL = re.compile(rf"EXEC(?:UTE)?\s+({_NAME}(?:\.{_NAME})*)(?=\s|;|$)(.*)", re.IGNORECASE | re.DOTALL)
_OURS = "(N'statement', N'text', N'procedure')"
"""The place of our statements in the query."""
_OTHER_WORK = re.compile(r"\b(?:SELECT|INSERT|UPDATE|DELETE|MERGE|EXEC|EXECUTE)\b", re.IGNORECASE)


def called_procedure(brief: str) -> str | None:
    """Return the procedure that a statement calls, or None if it does anything else."""
    call = _CALL.fullmatch(brief)
    return call[1] if call and not _OTHER_WORK.search(call[2]) else None


class StatementReads(MssqlCollector):
    name = "statement_reads"
    title = "Reads of statements"
    help = (
        "Executions and pages of each statement of SQL of a user's own, per cached plan (sys.dm_exec_query_stats), or "
        "of the procedure that it calls (sys.dm_exec_procedure_stats). A plan that leaves the cache takes its counts "
        "with it. Physical reads are pages read for the statement, read-ahead left out."
    )
    interval_s = 15.0
    on_azure = True
    columns = STATEMENT_READS

    def __init__(self, engine: Engine, statements: Mapping[str, Sequence[StatementFacts]]):
        super().__init__(engine)
        texts = {
            name: (as_sent(fact.sql), called_procedure(fact.text))
            for facts in statement_names(statements).values()
            for name, fact in facts.items()
        }
        counts = Counter(procedure or text for text, procedure in texts.values())
        self._alike = [name for name, (text, procedure) in texts.items() if counts[procedure or text] > 1]
        self._texts = {name: both for name, both in texts.items() if name not in self._alike}

    @cached_property
    def sql(self) -> str:
        rows = [
            f"({constant(name)}, {constant(text)}, {constant(procedure) if procedure else 'NULL'})"
            for name, (text, procedure) in self._texts.items()
        ]
        return statement(self.name, self.major).replace(_OURS, ", ".join(rows))

    def not_here(self) -> str | None:
        if not self._texts:
            return "All statements are alike to the server, so their reads are not known."
        if self.several:
            return "Reads of statements are shown of one database at a time."
        return super().not_here()

    def limits(self) -> str | None:
        if not self._alike:
            return None
        return f"The server counts these statements as one, so their reads are not known: {', '.join(self._alike)}."

    def sample(self, now: float) -> list[Row]:
        rows = [dict(row) for row in super().sample(now)]
        return [row for row in rows if _DECLARED.fullmatch(row.pop("declared") or "")]

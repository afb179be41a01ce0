"""A responder's answers: rules in order, the first that fits.

    script = Script()
    script.procedure("dbo.trade_order", Rows([Column("trade_id", BIGINT)], [(7,)]))
    script.procedure("dbo.trade_result", Error(1205, "deadlock", severity=13), times=1)   # then the next rule
    script.sql(r"from sys\\.dm_os_wait_stats", lambda request: [Rows(COLUMNS, next(samples))])
    script.sql(r"\\bCOMMIT\\b", Cut())            # the request has arrived, the answer never will
    script.bulk("dbo.trade", Hold())
    script.table("dbo.trade", [Column("id", BIGINT, nullable=False), …])   # what clients ask before a bulk load

A rule for a procedure fits an RPC as well as EXEC in a text. Rules for SQL fit the text of a batch, the statement
behind sp_executesql, sp_prepare, sp_prepexec and sp_execute, and transaction requests ("COMMIT TRANSACTION").
A statement with parameters that begins a transaction and does not end it, or ends one that it did not begin, gets
error 266 behind its answer, as from the server. Whatever no rule fits, and the responder cannot know by itself, gets
error 50000 naming the request.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from support.tds import questions
from support.tds.answers import Count, Cut, Error, Rendered, Step
from support.tds.login import Login
from support.tds.requests import Request, bulk_table, plain
from support.tds.tokens import Column

Answer = Sequence[Step] | Callable[[Request], Iterable[Step]]


class Rule:
    def __init__(
        self,
        fits: Callable[[Any], bool],
        steps: tuple[Any, ...],
        times: int | None = None,
        after_bytes: int | None = None,
    ):
        """`steps`: the answer, or one callable that gets the request and gives it."""
        self._fits = fits
        self._steps = steps
        self.times = times
        self.is_constant = times is None and not (steps and callable(steps[0]))
        self.after_bytes = after_bytes
        self.rendered: dict[Any, Rendered] = {}
        """For the session: the answer as bytes, by flow."""

    def fits(self, request: Any) -> bool:
        return self.times != 0 and self._fits(request)

    def spend(self) -> None:
        if self.times is not None:
            self.times -= 1

    def steps(self, request: Any) -> Iterable[Any]:
        self.spend()
        if self._steps and callable(self._steps[0]):
            return self._steps[0](request)
        return self._steps


class Script:
    def __init__(
        self,
        *,
        password: str | None = None,
        databases: Iterable[str] | None = None,
        answer_unknown: Sequence[Step] | None = None,
    ):
        """None for `password` or `databases`: any will do. `answer_unknown`: instead of error 50000."""
        self.password = password
        self.databases = None if databases is None else {name.lower() for name in databases}
        """In lower case; others cannot be opened."""
        self._refusals: list[Rule] = []
        self._rules: list[Rule] = []
        self.properties = questions.ExtendedProperties()
        self._own = [
            Rule(self.properties.asked_for, (self.properties.answer,)),
            Rule(lambda request: "@@lock_timeout" in request.text.lower(), (questions.SESSION,)),
            Rule(lambda request: questions.changes_only_settings(request.text), (questions.use,)),
            Rule(lambda request: "@@version" in request.text.lower(), (questions.VERSION,)),
            Rule(lambda request: "serverproperty" in request.text.lower(), (questions.server_properties,)),
            Rule(lambda request: request.procedure == "[sys].sp_datatype_info_100", (questions.type_info,)),
        ]
        unknown = (_unknown,) if answer_unknown is None else tuple(answer_unknown)
        self._unknown = Rule(lambda request: True, unknown)

    def procedure(self, name: str, *answer: Any, times: int | None = None) -> None:
        """`times`: so often, then as if the rule were not there."""
        wanted = plain(name)
        self._rules.append(Rule(lambda request: any(_same(wanted, it) for it in request.called), answer, times))

    def sql(self, pattern: str, *answer: Any, times: int | None = None) -> None:
        """`pattern`: a regular expression, found anywhere in the text whatever its case."""
        found = re.compile(pattern, re.I).search
        self._rules.append(Rule(lambda request: bool(request.text and found(request.text)), answer, times))

    def bulk(self, table: str, *answer: Any, times: int | None = None, after_bytes: int | None = None) -> None:
        """To a bulk load, when its rows have arrived; with `after_bytes` the connection is cut in the middle of them,
        and the answer is of no importance. Without a rule: the count of the rows."""
        wanted = plain(table)

        def fits(request: Request) -> bool:
            return request.kind == "bulk" and _same(wanted, request.table)

        self._rules.append(Rule(fits, answer, times, after_bytes=after_bytes))

    def table(self, name: str, columns: Sequence[Column]) -> None:
        """The table is there: answers what clients ask about one before they load rows into it."""
        wanted = plain(name)
        self._own.append(Rule(lambda request: questions.asks_about(request, wanted), tuple(questions.table(columns))))

    def login(self, *steps: Error | Cut, times: int | None = None, library: str = "") -> None:
        """Logins end so, those by `library` alone if it is named, and the connection with them."""
        self._refusals.append(Rule(lambda login: library in ("", login.library), steps, times))

    def rule_for(self, request: Request) -> Rule:
        for rules in (self._rules, self._own):
            for rule in rules:
                if rule.fits(request):
                    return rule
        return self._unknown

    def refusal(self, login: Login) -> list[Error | Cut]:
        """How this login ends; nothing when it succeeds."""
        for rule in self._refusals:
            if rule.fits(login):
                return list(rule.steps(None))
        failed = Error(18456, f"Login failed for user '{login.user}'.", severity=14)
        if self.password is not None and not login.has_password(self.password):
            return [failed]
        if self.databases is not None and login.database.lower() not in self.databases:
            text = f'Cannot open database "{login.database}" requested by the login. The login failed.'
            return [Error(4060, text, severity=11), failed]
        return []


def _same(wanted: str, called: str) -> bool:
    """Names are the same when one has no schema."""
    return wanted == called or wanted.endswith("." + called) or called.endswith("." + wanted)


def _unknown(request: Request) -> Iterable[Step]:
    if request.kind == "bulk":
        return [Count(len(request.rows))]
    if request.kind == "transaction" or bulk_table(request.text):
        return []
    asked = request.text or request.procedure
    return [Error(50000, f"the script has no answer to: {asked[:300]}")]

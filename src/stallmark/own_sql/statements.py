"""The statements of a user's SQL file: split, sorted by kind, and with `:name` parameters made into bound ones."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from stallmark.errors import StallmarkError

DIALECTS = ("postgresql", "mssql")


class Kind(StrEnum):
    """The kinds of statements that a load may or may not have."""

    READ = "read"
    WRITE = "write"
    DDL = "ddl"
    CONTROL = "transaction control"
    REFUSED = "refused"


_READS = frozenset({"SELECT", "WITH", "VALUES", "TABLE", "SHOW"})
_WRITES = frozenset({"INSERT", "UPDATE", "DELETE", "MERGE", "EXEC", "EXECUTE", "CALL", "DO", "NEXTVAL", "SETVAL"})
_WRITES |= {"SET_CONFIG", "UPDATETEXT", "WRITETEXT", "RECEIVE", "SEND", "CONVERSATION"}
_DDL = frozenset(
    {"ALTER", "ANALYZE", "BACKUP", "BULK", "CHECKPOINT", "CLUSTER", "COMMENT", "CREATE", "DBCC", "DENY", "DISCARD"}
    | {"DROP", "GRANT", "IMPORT", "KILL", "REASSIGN", "RECONFIGURE", "REFRESH", "REINDEX", "RESTORE", "REVOKE"}
    | {"SECURITY", "SHUTDOWN", "TRUNCATE", "VACUUM"}
)
_CONTROL = frozenset({"ABORT", "BEGIN", "COMMIT", "END", "RELEASE", "ROLLBACK", "SAVE", "SAVEPOINT", "START"})
_REFUSED = frozenset({"COPY", "LISTEN", "NOTIFY", "PREPARE", "DEALLOCATE", "LOAD", "UNLISTEN", "USE"})
# A T-SQL batch with one of these is one statement: a variable does not outlive its batch.
_OF_BATCH = frozenset({"DECLARE", "IF", "WHILE", "TRY", "GOTO", "RETURN", "PRINT", "THROW", "WAITFOR"})

# What T-SQL makes for the session or the batch alone, and goes with it.
_NAME_IN_CODE = r'(?:\w+|"")(?: \. (?:\w+|""))*'
_TEMPORARY = re.compile(
    r"\b(?:(?:CREATE|TRUNCATE) TABLE \#|ALTER TABLE \#(?: ADD| DROP| ALTER)?"
    r"|DROP TABLE (?:IF EXISTS )?\#(?: , \#)*+(?! [,.])"
    rf"|(?:CREATE (?:UNIQUE )?(?:CLUSTERED |NONCLUSTERED )?|DROP )INDEX (?:IF EXISTS )?{_NAME_IN_CODE} ON \#)"
)
_ANYWHERE = {
    Kind.REFUSED: re.compile(r"\bUSE\b(?! HINT\b| PLAN\b)"),
    Kind.CONTROL: re.compile(
        r"\b(?:COMMIT|ROLLBACK|SAVE|BEGIN (?:DISTRIBUTED )?TRAN(?:SACTION)?|SET TRANSACTION|SET IMPLICIT_TRANSACTIONS)"
        r"\b|^BEGIN(?: ;|$)"
    ),
    Kind.DDL: re.compile(
        r"\b(?:ALTER|BACKUP|BULK INSERT|CHECKPOINT|CREATE|DBCC|DENY|(?:DISABLE|ENABLE) TRIGGER|DROP|GRANT|KILL"
        r"|RECONFIGURE|RESTORE|REVOKE|SHUTDOWN|TRUNCATE|UPDATE STATISTICS)\b"
    ),
}
_HINT = re.compile(r"\bMERGE (?=JOIN\b|UNION\b)")
_CHANGES = re.compile(
    r"(?<!FOR )(?<!THEN )\b(?:INSERT|UPDATE|DELETE|MERGE)\b(?! (?:TOP \( [^)]*\) )?(?:INTO |FROM )?[#@])"
)
_CALLS = re.compile(r"\bEXEC(?:UTE)?\b")
_INTO = re.compile(r"\b(SELECT|INSERT|MERGE|OUTPUT|FETCH)\b|\bINTO\b(?! [#@])")


@dataclass(frozen=True)
class Statement:
    """A statement as it is prepared: `sql` has a place for each of `names`, which repeat where the dialect counts
    places. `line` counts from 1; `words` are its bare words in capitals, `brief` its text in one line, without
    comments. `code` has its words in capitals and its signs, with a space between; names and texts in quotes are ""
    in it, and variables and temporary tables their mark."""

    line: int
    sql: str
    names: tuple[str, ...]
    words: tuple[str, ...]
    brief: str
    code: str
    dialect: str

    @cached_property
    def kind(self) -> Kind:
        """The kind by its words; a function that a SELECT calls may write all the same."""
        return self._kind_and_word[0]

    @cached_property
    def word(self) -> str:
        """The word, or words, by which it is refused."""
        return self._kind_and_word[1]

    @cached_property
    def _kind_and_word(self) -> tuple[Kind, str]:
        first = self.words[0] if self.words else ""
        if first in _REFUSED:
            return Kind.REFUSED, first
        if self.dialect == "mssql":
            # T-SQL needs no semicolon between statements, so that each of its reserved words may begin one.
            code = _TEMPORARY.sub("", self.code)
            for kind, pattern in _ANYWHERE.items():
                if match := pattern.search(code):
                    return kind, match[0]
        # BEGIN and END are of blocks in T-SQL, too. Other SETs are statements; this one would undo the isolation that
        # workload.yaml chooses.
        blocks = ("BEGIN", "END") if self.dialect == "mssql" else ()
        if first in _CONTROL.difference(blocks) or (first == "SET" and "TRANSACTION" in self.words[:3]):
            return Kind.CONTROL, first
        if first in _DDL and not (self.dialect == "mssql" and _TEMPORARY.match(self.code)):
            return Kind.DDL, first
        if _makes_table(self.code):
            return Kind.DDL, "SELECT … INTO"
        # Every word counts and not the first alone, as a WITH may hold an INSERT. An unknown statement is taken to
        # write.
        writes = first not in _READS or _WRITES.intersection(_HINT.sub("", self.code).split())
        return Kind.WRITE if writes or "NEXT VALUE FOR" in self.code else Kind.READ, first

    @property
    def changes_rows(self) -> bool:
        """Return True if the statement itself changes rows of a table that is not temporary."""
        return bool(_CHANGES.search(_HINT.sub("", self.code)))

    @property
    def is_atomic(self) -> bool:
        """Return True if all that the statement changes is kept, or nothing. A batch of T-SQL commits each change by
        itself; a procedure that is called alone ends its transactions as it is written."""
        if self.dialect != "mssql":
            return True
        changes = _CHANGES.findall(_HINT.sub("", self.code)) + _CALLS.findall(self.code)
        return len(changes) < 2 and not {"WHILE", "GOTO"}.intersection(self.words)

    @property
    def begins(self) -> bool:
        """Return True if the statement begins a transaction."""
        return self.kind is Kind.CONTROL and self.words[0] in ("BEGIN", "START")

    @property
    def ends(self) -> bool:
        """Return True if the statement ends a transaction."""
        # ROLLBACK TO a savepoint leaves the transaction open, and COMMIT PREPARED ends another one than the session's.
        partial = "TO" in self.words or "PREPARED" in self.words
        return self.kind is Kind.CONTROL and self.words[0] in ("COMMIT", "END", "ROLLBACK", "ABORT") and not partial


def _makes_table(code: str) -> bool:
    """Return whether a SELECT … INTO makes a table that stays; those of T-SQL that begin with # or @ go by
    themselves."""
    last = ""
    for match in _INTO.finditer(code):
        if match[1]:
            last = match[1]
        elif last == "SELECT":
            return True
    return False


class _Token(NamedTuple):
    kind: str
    text: str
    line: int
    start: int


_NAME = r"[^\W\d]\w*"
_COMMON = rf"""
    (?P<comment>--[^\n]*)
  | (?P<block>/\*)
  | (?P<cast>::|:=)
  | (?P<parameter>:{_NAME})
  | (?P<end>;)
"""
_LEXERS = {
    "postgresql": re.compile(
        rf"""
    (?P<escaped>[eE]'(?:[^'\\]|\\.|'')*(?P<closed_e>'))
  | (?P<dollar>(?<![\w$])\$(?P<tag>(?:{_NAME})?)\$)
  | (?P<string>'(?:[^']|'')*(?P<closed_s>')?)
  | (?P<quoted>"(?:[^"]|"")*(?P<closed_q>")?)
  | {_COMMON}
  | (?P<word>{_NAME}(?:\$\w*)*)
  | (?P<number>\d[\w.]*)
  | (?P<space>\s+)
  | (?P<other>.)
""",
        re.VERBOSE | re.DOTALL,
    ),
    "mssql": re.compile(
        rf"""
    (?P<go>(?im:^[ \t]*GO(?:[ \t]+\d+)?[ \t]*$))
  | (?P<string>'(?:[^']|'')*(?P<closed_s>')?)
  | (?P<quoted>"(?:[^"]|"")*(?P<closed_q>")?)
  | (?P<bracket>\[(?:[^\]]|\]\])*(?P<closed_b>\])?)
  | {_COMMON}
  | (?P<variable>[@\#$][\w@\#$]+)
  | (?P<word>{_NAME})
  | (?P<number>\d[\w.]*)
  | (?P<space>\s+)
  | (?P<other>.)
""",
        re.VERBOSE | re.DOTALL,
    ),
}
_CLOSED = {"string": "closed_s", "quoted": "closed_q", "bracket": "closed_b", "escaped": "closed_e"}
_COMMENT_ENDS = re.compile(r"/\*|\*/")


def split(text: str, dialect: str) -> list[Statement]:
    """Return the statements of a text in a dialect. Raise StallmarkError, a clause, if something in it does not end.

    PostgreSQL's end with a semicolon. T-SQL is cut at GO lines, and at semicolons in a batch without variables or
    blocks.
    """
    batches: list[list[_Token]] = [[]]
    for token in _tokens(text, dialect):
        if token.kind == "go":
            batches.append([])
        else:
            batches[-1].append(token)
    statements = [
        _statement(part, dialect)
        for batch in batches
        for part in ([batch] if dialect == "mssql" and _is_whole(batch) else _parts(batch))
    ]
    return [statement for statement in statements if statement.words]


def _tokens(text: str, dialect: str) -> Iterator[_Token]:
    lexer, position, line = _LEXERS[dialect], 0, 1
    while position < len(text):
        token = lexer.match(text, position)
        assert token
        kind = next(name for name in (token.lastgroup, *token.groupdict()) if name and token[name] and _is_kind(name))
        end = token.end()
        if kind == "block":
            end = _end_of_comment(text, position, line)
        elif kind == "dollar":
            end = text.find(token[0], end) + len(token[0])
            if end < len(token[0]):
                raise StallmarkError(f"the text that {token[0]} begins in line {line} does not end")
        elif (closed := _CLOSED.get(kind)) and not token[closed]:
            raise StallmarkError(f"the {'name' if kind != 'string' else 'text'} in quotes of line {line} does not end")
        yield _Token(kind, text[position:end], line, position)
        line += text.count("\n", position, end)
        position = end


def _is_kind(name: str) -> bool:
    return name != "tag" and not name.startswith("closed")


def _end_of_comment(text: str, start: int, line: int) -> int:
    depth = 0
    for mark in _COMMENT_ENDS.finditer(text, start):
        depth += 1 if mark[0] == "/*" else -1
        if not depth:
            return mark.end()
    raise StallmarkError(f"the comment of line {line} does not end")


def _is_whole(batch: list[_Token]) -> bool:
    """Return whether a T-SQL batch has variables or blocks, which no cut may part."""
    words = [token.text.upper() for token in batch if token.kind == "word"]
    begins_block = any(
        word == "BEGIN" and following not in ("TRAN", "TRANSACTION") for word, following in pairwise([*words, ""])
    )
    return begins_block or bool(_OF_BATCH.intersection(words))


def _parts(batch: list[_Token]) -> Iterator[list[_Token]]:
    part: list[_Token] = []
    for token in batch:
        if token.kind == "end":
            yield part
            part = []
        else:
            part.append(token)
    yield part


def _statement(tokens: list[_Token], dialect: str) -> Statement:
    names: list[str] = []
    sql: list[str] = []
    for token in tokens:
        if token.kind == "parameter":
            sql.append(_place(token.text[1:], names, dialect))
        else:
            sql.append(token.text)
    _refuse_foreign(tokens, dialect)
    words = tuple(token.text.upper() for token in tokens if token.kind == "word")
    begins = [token.line for token in tokens if token.kind not in ("space", "comment", "block")]
    bare = "".join(" " if token.kind in ("comment", "block") else token.text for token in tokens)
    brief = " ".join(bare.split())
    code = " ".join(_as_code(token) for token in tokens if token.kind not in ("space", "comment", "block"))
    line = begins[0] if begins else 1
    return Statement(line, "".join(sql).strip(), tuple(names), words, brief, code, dialect)


def _refuse_foreign(tokens: list[_Token], dialect: str) -> None:
    """Raise StallmarkError, a clause, for what other programs make of a text before a server sees it."""
    for token, following in pairwise([*tokens, _Token("end", ";", 0, 0)]):
        if token.kind != "other":
            continue
        is_place = token.text == "?" if dialect == "mssql" else token.text == "$" and following.kind == "number"
        if is_place:
            place = "?" if dialect == "mssql" else f"${following.text}"
            raise StallmarkError(f"line {token.line} has a `{place}`: write :name, so that its source can be named")
        if token.text == ":" and following.kind in ("string", "quoted"):
            raise StallmarkError(
                f"line {token.line} has :{following.text}: write :name, which is bound and needs no quotes"
            )
        if token.text == "\\":
            raise StallmarkError(
                f"line {token.line} has a `\\`, as commands of psql and pgbench begin: remove it, or name a script of "
                "pgbench with -f"
            )


def _as_code(token: _Token) -> str:
    if token.kind == "word":
        return token.text.upper()
    # Names of variables and of temporary tables may be words of SQL, so that their mark alone stands for them.
    if token.kind == "variable" or token.text.startswith("[#"):
        return token.text.lstrip("[")[0]
    return token.text if token.kind in ("other", "end", "cast", "number") else '""'


def _place(name: str, names: list[str], dialect: str) -> str:
    """Return the place of a parameter: numbered in PostgreSQL, where one that comes again has its number."""
    if dialect == "mssql":
        names.append(name)
        return "?"
    if name not in names:
        names.append(name)
    return f"${names.index(name) + 1}"

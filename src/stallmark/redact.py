"""Text made harmless: secrets removed, and escaped for where it goes."""

import html
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus, unquote

# Text that people or servers chose, made harmless for where it goes: a terminal, Markdown, a spreadsheet.
#
# HTML, SVG, JSON and Prometheus' format are escaped by the libraries that write them, after `visible`.

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but for the tab and the line feed
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # direction, width
    "\ud800-\udfff]"  # halves of characters
)


def visible(text: str) -> str:
    """Return text with a picture of each character that acts and does not show: that moves the cursor, changes colours
    or turns the direction of reading."""
    return _UNSEEN.sub(_picture, text.replace("\r\n", "\n"))


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "�"


_APART = "\u2060"
"""Joins the characters around it and is invisible: with it inside, trackers do not recognise an address or a name."""
_MARKS = re.compile(r"([\\`*_\[\]|~$])")
_LINKS = re.compile(r"\b(https?:|ftp:|mailto:|xmpp:|www(?=\.))", re.I)
_NAMED = re.compile(r"([@#!%^&])(?=\w)")


def markdown(text: str) -> str:
    """Return text for one line of Markdown that stays text: no mark-up, no HTML, no links, no mentions."""
    one_line = _LINKS.sub(rf"\1{_APART}", _NAMED.sub(rf"\1{_APART}", visible(text).replace("\n", " ")))
    html = one_line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(r"\\\1", html)


FORMULA = r"^[=+\-@\t\r]"
"""The beginning of a cell that a spreadsheet takes for a formula, unless it is a FIGURE."""
FIGURE = r"^[-+]?\d+([.,]\d+)?( ?%)?$"


def spreadsheet(text: str) -> str:
    """Return text for a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if re.match(FORMULA, text) and not re.match(FIGURE, text) else text


# Secrets: how one is known, and names, texts and environments without them.
#
# A secret is a value whose name says so (`names_secret`), the password in a URL, or a password that we were given.

OURS = "STALLMARK_HOME"
"""The one variable of ours that a command may need: `stallmark array` finds its emulated array by it."""

HIDDEN = "(hidden)"

SHORTEST = 6
"""Characters of a password that is looked for inside words: of a shorter one every other word would be hidden."""

_FOLDERS = ("PWD", "OLDPWD")  # named like passwords, and are none

_NAME = re.compile(
    r"(?<!ask)(?<!by)(?<!com)pass(w|phrase|code|_|$)|pwd|_pw$|secret|token|credential|"
    r"(api|private|access|account|storage|encryption)_?key|_auth$",
    re.IGNORECASE,
)

_WORD = "(?:password|passwd|pwd|secret|token)"
_VALUE = r"""\{(?:[^}\n]|\}\})*\}|"(?:[^"\\\n]|\\.|"")*"|N?'(?:[^'\\\n]|\\.|'')*'|N?'(?:[^'\n]|'')*'|[^\s,;]+"""
_IN_TEXT = re.compile(rf"""({_WORD}["']?[ \t]*[=:][ \t]*)({_VALUE})""", re.IGNORECASE)
_IN_URL = re.compile(r"(://[^/@\s:]*:)([^/\s]+)@")
_GIVEN = re.compile(
    rf"^\w[\w+.-]*://[^/@]*:[^/]+@|(?<![a-z])(?:ssl)?{_WORD}\s*=|^--?{_WORD}$", re.IGNORECASE
)  # a URL as a whole may hold spaces


def names_secret(name: str) -> bool:
    """Return True if a variable, key or option of this name may hold a secret: SSHPASS, api_key, admin password …"""
    return bool(_NAME.search(name))


def holds_secret(argument: str) -> bool:
    """Return True if an argument or URL holds a password, or is the name of an option whose password follows."""
    plain = unquote(argument)
    return bool(_IN_URL.search(plain) or _GIVEN.search(plain))


def environment() -> dict[str, str]:
    """Return our environment without secrets, by name or by value, and with our own programs first.

    So `stallmark array change` in a command is this one.
    """
    kept = {name: value for name, value in os.environ.items() if not _is_secret(name, value)}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return kept | {"PATH": path}


def without_secrets(text: str) -> str:
    """Return an output without the passwords of our environment, and without what it calls one itself."""
    text = _IN_URL.sub(rf"\1{HIDDEN}@", _without_given(text))
    return _IN_TEXT.sub(rf"\1{HIDDEN}", text)


def _without_given(text: str) -> str:
    for secret in sorted(set().union(*map(forms, _secrets_in_environment())), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    return text


# Secrets in SQL: literals, and parameters, where its words call for one.

_SQL_TOKEN = re.compile(
    r"""
    (?P<comment>--[^\n]*|/\*.*?(?:\*/|$))
  | (?P<literal>[eE]'(?:[^'\\]|\\.|'')*(?:'|$)|(?:[nN]|[uU]&)?'(?:[^']|'')*(?:'|$))
  | (?P<dollar>(?<![\w$])\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?(?:\$(?P=tag)\$|$))
  | (?P<cast>::|:=)
  | (?P<parameter>:[^\W\d]\w*)
  | (?P<name>"(?:[^"]|"")*"|\[[^]'[]*]|[@\#]*[^\W\d][\w$]*)
  | (?P<sign>\S)
""",
    re.VERBOSE | re.DOTALL,
)
_CALLED_SECRET = re.compile(rf"{_WORD}|pass(?:phrase|code)|api_?key", re.IGNORECASE)
_BETWEEN = {*"=<>!~", ":=", "::", "not", "in", "any", "some", "all", "like", "ilike", "encrypted"}
"""Signs and words between a column or an option and its value."""
_ARGUMENTS: Mapping[str, tuple[int, ...]] = {
    **dict.fromkeys(("crypt", "decryptbypassphrase", "encryptbypassphrase", "pwdcompare", "pwdencrypt"), (0,)),
    **dict.fromkeys(("decrypt", "encrypt", "hmac", "pgp_sym_decrypt", "pgp_sym_encrypt"), (1,)),
    **dict.fromkeys(("sp_addapprole", "sp_addlogin", "sp_setapprole"), (1,)),
    "openrowset": (3,),
    "sp_addlinkedsrvlogin": (4,),
    "sp_password": (0, 1),
}
"""The arguments of functions and procedures that are secrets by their position, from 0."""
_IN_LITERAL = re.compile(
    rf"""({_WORD}\s*=\s*)(?:\{{(?:[^}}]|\}}\}})*\}}|"(?:[^"]|"")*"|[^\s;,&'"{{]+)""", re.IGNORECASE
)
_IN_COMMENT = re.compile(rf"({_WORD}\s*[:=]\s*)(?![:?$@])(?:{_VALUE})", re.IGNORECASE)
_HINT = re.compile(rf"{_CALLED_SECRET.pattern}|identified|://|{'|'.join(_ARGUMENTS)}", re.IGNORECASE)


def sql_without_secrets(text: str) -> str:
    """Return SQL without the literals that its words call a secret, and without passwords of connection strings in
    others. Unlike an output it keeps names and parameters: in `token = :token` there is nothing to hide."""
    text = _without_given(text)
    if not _HINT.search(text):
        return text
    tokens = list(_SQL_TOKEN.finditer(text))
    secrets = set(_secret_places(tokens))
    parts, end = [], 0
    for place, token in enumerate(tokens):
        parts.append(text[end : token.start()])
        parts.append(_token_without_secrets(token, is_secret=place in secrets))
        end = token.end()
    return "".join([*parts, text[end:]])


def secret_parameters(text: str) -> set[str]:
    """Return the parameters (`:name`) of SQL that are secrets by their names or places."""
    tokens = list(_SQL_TOKEN.finditer(text))
    places = set(_secret_places(tokens)) if _HINT.search(text) else set()
    named = {place: token[0][1:] for place, token in enumerate(tokens) if token.lastgroup == "parameter"}
    return {name for place, name in named.items() if place in places or names_secret(name)}


def _token_without_secrets(token: re.Match[str], *, is_secret: bool) -> str:
    text = token[0]
    match token.lastgroup:
        case "comment":
            return _IN_COMMENT.sub(rf"\1{HIDDEN}", _IN_URL.sub(rf"\1{HIDDEN}@", text))
        case "literal" | "dollar" if is_secret:
            return f"{text.partition(chr(39))[0] if token['literal'] else ''}'{HIDDEN}'"
        case "literal":
            begin, _, rest = text.partition("'")
            within = rest.removesuffix("'").replace("''", "'")
            cleaned = sql_without_secrets(_IN_LITERAL.sub(rf"\1{HIDDEN}", _IN_URL.sub(rf"\1{HIDDEN}@", within)))
            return text if cleaned == within else f"{begin}'{cleaned.replace(chr(39), chr(39) * 2)}'"
        case "dollar":
            mark = f"${token['tag']}$"
            return mark + sql_without_secrets(text.removeprefix(mark).removesuffix(mark)) + mark
    return text


Tokens = list[re.Match[str]]


def _bare(tokens: Tokens, place: int) -> str:
    """Return a name in small letters and without its quotes, or another token as it is; empty behind the last one."""
    if place >= len(tokens):
        return ""
    return tokens[place][0].strip('"[]@#').lower() if tokens[place].lastgroup == "name" else tokens[place][0]


def _secret_places(tokens: Tokens) -> Iterator[int]:
    """Yield the places of literals and parameters that are secrets. Other tokens may be among them."""
    for place, token in enumerate(tokens):
        if token.lastgroup != "name":
            continue
        name = _bare(tokens, place)
        if name in _ARGUMENTS and (name.startswith("sp_") or _bare(tokens, place + 1) == "("):
            arguments = list(_arguments(tokens, place + 1))
            for position in _ARGUMENTS[name]:
                yield from arguments[position] if position < len(arguments) else ()
        elif _CALLED_SECRET.search(name) or (name == "by" and _bare(tokens, place - 1) == "identified"):
            yield from _places_of_value(tokens, place + 1)
        elif name == "insert":
            yield from _places_of_columns(tokens, place + 1)


def _places_of_value(tokens: Tokens, place: int) -> Iterator[int]:
    """Yield the places of the value behind a name: a literal, several joined, or all in brackets."""
    begin = place
    while (text := _bare(tokens, place)) in _BETWEEN:
        place += 1 + (text == "::")  # a cast, and its type
    if _bare(tokens, place + 1) == "(" and tokens[place].lastgroup == "name":
        place += 1  # a function
    if _bare(tokens, place) == "(" and place > begin:
        for argument in _arguments(tokens, place):
            yield from argument
        return
    while place < len(tokens) and tokens[place].lastgroup in ("literal", "dollar", "parameter"):
        yield place
        joined = [_bare(tokens, place + 1), _bare(tokens, place + 2)]
        place += 2 if joined[0] == "+" else 3 if joined == ["|", "|"] else len(tokens)


def _places_of_columns(tokens: Tokens, place: int) -> Iterator[int]:
    """Yield the places of an INSERT's values whose columns are called secrets."""
    while place < len(tokens) and _bare(tokens, place) not in ("(", ";", "values", "select"):
        place += 1
    columns = list(_arguments(tokens, place)) if _bare(tokens, place) == "(" else []
    secrets = [
        number
        for number, column in enumerate(columns)
        if any(_CALLED_SECRET.search(_bare(tokens, part)) for part in column)
    ]
    while secrets and place < len(tokens) and _bare(tokens, place) not in (";", "values", "select"):
        place += 1
    is_query = _bare(tokens, place) == "select"
    while secrets and place < len(tokens):
        place += 1
        values = list(_arguments(tokens, place))
        for number in secrets:
            yield from values[number] if number < len(values) else ()
        # Further rows in brackets.
        place = values[-1].stop + 1 if values else len(tokens)
        if is_query or _bare(tokens, place) != ",":
            return


def _arguments(tokens: Tokens, place: int) -> Iterator[range]:
    """Yield the arguments that begin here, in brackets or, of a procedure or a query, without. Semicolons separate some
    of OPENROWSET."""
    brackets = _bare(tokens, place) == "("
    begin = place = place + brackets
    depth = 0
    while place < len(tokens):
        text = _bare(tokens, place)
        if not depth and (text == ")" if brackets else text in (";", "from", "go", ")")):
            break
        depth += (text == "(") - (text == ")")
        if not depth and text in (",", ";"):
            yield range(begin, place)
            begin = place + 1
        place += 1
    if begin < place:
        yield range(begin, place)


def definition_without_secrets(value: Any) -> Any:
    """Return a JSON value without the secrets of each definition of SQL below a key `sql`."""
    if isinstance(value, dict):
        return {
            key: _without_secrets_of(part, set().union(*map(secret_parameters, _texts(part))))
            if key == "sql"
            else definition_without_secrets(part)
            for key, part in value.items()
        }
    return [definition_without_secrets(part) for part in value] if isinstance(value, list) else value


def _texts(value: Any) -> Iterator[str]:
    """Yield the texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _texts(part)


def _without_secrets_of(value: Any, secrets: set[str]) -> Any:
    """Return a part of a definition without secrets."""
    match value:
        case str():
            return sql_without_secrets(value)
        case dict():
            return {
                key: {
                    names: _source_without_secrets(source, [name.strip() for name in names.split(",")], secrets)
                    for names, source in part.items()
                }
                if key in ("parameters", "define") and isinstance(part, dict)
                else _without_secrets_of(part, secrets)
                for key, part in value.items()
            }
        case list():
            return [_without_secrets_of(part, secrets) for part in value]
    return value


def _source_without_secrets(source: Any, columns: Sequence[str], secrets: set[str]) -> Any:
    """Return the source of parameters, or the value of a variable, without the values of secrets."""
    hidden = [name in secrets or names_secret(name) for name in columns]
    if not isinstance(source, dict):
        return HIDDEN if any(hidden) else source
    cleaned = _without_secrets_of(source, secrets)
    if any(hidden) and "values" in cleaned:
        cleaned["values"] = [HIDDEN for _ in cleaned["values"]]
    if any(hidden) and "rows" in cleaned:
        cleaned["rows"] = [
            [HIDDEN if is_hidden else cell for cell, is_hidden in zip(row, hidden, strict=False)] + row[len(hidden) :]
            for row in cleaned["rows"]
        ]
    return cleaned


def forms(password: str) -> set[str]:
    """Return a password as outputs write it: plain, in a URL, in braces (ODBC), and in quotes of several languages."""
    encoded = {quote(password), quote(password, safe=""), quote(password, safe=" +"), quote_plus(password)}
    return {
        password,
        *encoded,
        *(re.sub("%..", lambda code: code[0].lower(), secret) for secret in encoded),
        password.replace("}", "}}"),
        password.replace("'", "''"),
        password.replace('"', '""'),
        password.replace("\\", "\\\\").replace("'", "\\'"),
        json.dumps(password)[1:-1],
        json.dumps(password, ensure_ascii=False)[1:-1],
        repr(password)[1:-1],
        shlex.quote(password),
        html.escape(password),
    }


class Redactor:
    """Remove from a text the names of servers, users and this machine, and every secret.

    A user's name may be a word of the language, so it is removed only if quoted, as 'x', "x" or [x]. DOMAIN\\x is
    unambiguous and is removed everywhere, as every other name of that domain is.
    """

    def __init__(self, names: Mapping[str, str], users: Iterable[str], password: str | None):
        """Take `names` with their replacements."""
        secrets = sorted(forms(password) if password else (), key=len, reverse=True)
        patterns = {_pattern_of(secret): "<password>" for secret in secrets}
        patterns |= {rf"(?<!\w){re.escape(name)}(?!\w)": names[name] for name in sorted(filter(None, names), key=len)}
        for name in filter(None, users):
            patterns[rf"""['"\[]{re.escape(name)}['"\]]"""] = "<user>"
            domain, separator, _ = name.partition("\\")
            if separator:
                patterns[rf"(?<!\w){re.escape(domain)}\\[\w.$-]+"] = "<user>"
        self._patterns = [
            (re.compile(pattern, re.IGNORECASE), replacement) for pattern, replacement in patterns.items()
        ]

    def __call__(self, text: str) -> str:
        for pattern, placeholder in self._patterns:
            text = pattern.sub(placeholder, text)
        return without_secrets(text)


def without_values(text: str, secrets: Iterable[object]) -> str:
    """Return a text without these values."""
    for secret in sorted(filter(None, map(str, secrets)), key=len, reverse=True):
        text = re.sub(_pattern_of(secret), HIDDEN, text)
    return text


def _pattern_of(secret: str) -> str:
    bounds = ("", "") if len(secret) >= SHORTEST else (r"(?<!\w)", r"(?!\w)")
    return re.escape(secret).join(bounds)


def _is_secret(name: str, value: str) -> bool:
    if name in (OURS, *_FOLDERS):
        return False
    ours = name.upper().startswith("STALLMARK_")
    return ours or names_secret(name) or bool(_IN_URL.search(value) or _IN_TEXT.search(value))


def _secrets_in_environment() -> Iterator[str]:
    """Yield the passwords in our environment: whole values, and those within URLs and settings."""
    for name, value in os.environ.items():
        if not _is_secret(name, value):
            continue
        within = [match[2] for match in _IN_URL.finditer(value)]
        within += [match[2].strip("\"'{}") for match in _IN_TEXT.finditer(value)]
        whole = [] if name.upper().startswith("STALLMARK_") else [value]
        yield from (candidate for candidate in (*whole, *within, *map(unquote, within)) if len(candidate) >= SHORTEST)

"""Text made harmless: secrets removed, and escaped for where it goes."""

import html
import json
import os
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
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


# Each literal of SQL, with the words before it if they call it a secret: `password = `, `identified by `.
_SQL_LITERAL = re.compile(
    rf"""(\b(?:\w*(?:{_WORD}|passphrase|api_?key)\w*|identified\s+by)["\]]?\s*(?:[:<>!]?=\s*)?(?:\w+\s*\(\s*)?N?)?"""
    "('(?:[^']|'')*')",
    re.IGNORECASE,
)
_IN_LITERAL = re.compile(rf"({_WORD}\s*=\s*)[^\s;,&']+", re.IGNORECASE)


def sql_without_secrets(text: str) -> str:
    """Return SQL without the literals that its words call a secret, and without passwords of connection strings in
    others. Unlike an output it keeps names and parameters: in `token = :token` there is nothing to hide."""

    def cleaned(literal: re.Match[str]) -> str:
        if literal[1]:
            return f"{literal[1]}'{HIDDEN}'"
        return _IN_LITERAL.sub(rf"\1{HIDDEN}", _IN_URL.sub(rf"\1{HIDDEN}@", literal[2]))

    return _SQL_LITERAL.sub(cleaned, _without_given(text))


def definition_without_secrets(value: Any, *, is_sql: bool = False) -> Any:
    """Return a JSON value with every text below a key `sql` as `sql_without_secrets` returns it."""
    if isinstance(value, str):
        return sql_without_secrets(value) if is_sql else value
    if isinstance(value, dict):
        return {key: definition_without_secrets(part, is_sql=is_sql or key == "sql") for key, part in value.items()}
    return [definition_without_secrets(part, is_sql=is_sql) for part in value] if isinstance(value, list) else value


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
        patterns = {}
        for secret in sorted(forms(password) if password else (), key=len, reverse=True):
            bounds = ("", "") if len(secret) >= SHORTEST else (r"(?<!\w)", r"(?!\w)")
            patterns[re.escape(secret).join(bounds)] = "<password>"
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

"""Two parsers of T-SQL: each returns what is wrong with a script, nothing when it is right.

`sqlfluff` is always there, takes some texts that are no T-SQL and refuses a few that are. Microsoft's own is strict,
and is there if `make packages` could unpack it; a test that calls it carries the mark `microsoft_parser`.
"""

import atexit
import functools
import hashlib
import os
import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

import sqlfluff as package
from sqlfluff.core import FluffConfig, Linter

from support.tsql.tools_service import ToolsService

KNOWN = Path(tempfile.gettempdir()) / f"stallmark-tests-{os.getuid()}" / "parsed"
"""Empty files by the digests of texts that sqlfluff has taken: it needs up to two seconds for one."""

# Strings, quoted names and comments, in which a question mark is none of ours; or a question mark.
_TOKENS = re.compile(
    r"'(?:[^']|'')*'|\[(?:[^]]|\]\])*\]|\"(?:[^\"]|\"\")*\"|--[^\n]*|/\*.*?\*/|(?P<mark>\?)", re.DOTALL
)


def with_parameters(text: str) -> str:
    """`?` as the driver sends it to the server: @P1, @P2, …"""
    count = 0

    def numbered(token: re.Match[str]) -> str:
        nonlocal count
        if not token["mark"]:
            return token[0]
        count += 1
        return f"@P{count}"

    return _TOKENS.sub(numbered, text)


def sqlfluff(text: str) -> list[str]:
    parsed = _linter().parse_string(with_parameters(text))
    return [f"line {error.line_no}: {error.desc()}" for error in parsed.violations]


def wrong(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return sqlfluff's findings, by text. A text that it once took is not parsed again."""
    KNOWN.mkdir(parents=True, exist_ok=True)
    found = {}
    for text in texts:
        mark = KNOWN / hashlib.sha256(f"{package.__version__}\0{text}".encode()).hexdigest()
        if mark.exists():
            continue
        if errors := sqlfluff(text):
            found[text] = errors
        else:
            mark.touch()
    return found


def microsoft(text: str) -> list[str]:
    return _service().errors(with_parameters(text))


@functools.cache
def _linter() -> Linter:
    # No templates: braces are braces. No limit on size: a text that was skipped would pass.
    return Linter(FluffConfig({"core": {"dialect": "tsql", "templater": "raw", "large_file_skip_byte_limit": 0}}))


@functools.cache
def _service() -> ToolsService:
    service = ToolsService().__enter__()
    atexit.register(service.__exit__)
    return service

"""Two parsers of T-SQL: each returns what is wrong with a script, nothing when it is right.

`sqlfluff` is always there, takes some texts that are no T-SQL and refuses a few that are. Microsoft's own is strict,
and works where it is installed; a test that calls it elsewhere is skipped with a sentence.
"""

import atexit
import functools
import re

import pytest
from sqlfluff.core import FluffConfig, Linter

from support.tsql import tools_service

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


def microsoft(text: str) -> list[str]:
    if why := tools_service.missing():
        pytest.skip(why)
    return _service().errors(with_parameters(text))


@functools.cache
def _linter() -> Linter:
    # No templates: braces are braces. No limit on size: a text that was skipped would pass.
    return Linter(FluffConfig({"core": {"dialect": "tsql", "templater": "raw", "large_file_skip_byte_limit": 0}}))


@functools.cache
def _service() -> tools_service.ToolsService:
    program = tools_service.find()
    assert program
    service = tools_service.ToolsService(program).__enter__()
    atexit.register(service.__exit__)
    return service

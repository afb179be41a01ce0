"""Microsoft's own parser of T-SQL: it returns what is wrong with a script, nothing when it is right.

It is there if `make packages` could unpack it; a test that calls it carries the mark `microsoft_parser`.
"""

import atexit
import functools
import re

from support.tsql.tools_service import ToolsService

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


def errors(text: str) -> list[str]:
    return _service().errors(with_parameters(text))


@functools.cache
def _service() -> ToolsService:
    service = ToolsService().__enter__()
    atexit.register(service.__exit__)
    return service

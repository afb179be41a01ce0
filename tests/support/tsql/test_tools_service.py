"""The client of Microsoft's parser has the answer to its question, and outlives a program that ends."""

import pytest

from support.tsql.tools_service import ToolsService


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo No usable version of libssl was found >&2; exit 134", "No usable version of libssl was found"),
        ("exit 0", "without a word"),
        ("printf 'Content-Length: 900\\r\\n\\r\\n{'", "within an answer"),
    ],
)
def test_a_program_that_ends(tmp_path, script, why):
    program = tmp_path / "service"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    with ToolsService(program) as parser, pytest.raises(EOFError, match=why):
        parser.errors("SELECT 1")


@pytest.mark.microsoft_parser
def test_answers_are_of_their_questions():
    with ToolsService() as parser:
        assert parser.errors("SELECT 1;\nGO\nCREATE PROCEDURE p AS SELECT N'é';\nGO\n") == []
        assert parser.errors("SELECT FROM") != []
        assert parser.errors("SELECT 1") == []

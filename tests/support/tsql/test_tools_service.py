"""The client of Microsoft's parser says why it cannot work, and outlives a program that ends."""

import pytest

from support.tsql import tools_service


def missing(monkeypatch, program: str) -> str | None:
    monkeypatch.setenv(tools_service.VARIABLE, program)
    return tools_service.missing.__wrapped__()


def test_no_program(monkeypatch):
    monkeypatch.delenv(tools_service.VARIABLE, raising=False)
    monkeypatch.setenv("PATH", "")
    said = tools_service.missing.__wrapped__()
    assert said and said.startswith("Microsoft's T-SQL parser is not here: STALLMARK_SQLTOOLSSERVICE names no program")


def test_a_program_that_is_not_there(monkeypatch):
    said = missing(monkeypatch, "/nowhere/service")
    assert said and said.startswith("Microsoft's T-SQL parser does not run (/nowhere/service: ")


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo No usable version of libssl was found >&2; exit 134", "No usable version of libssl was found"),
        ("exit 0", "it said nothing"),
        ("printf 'Content-Length: 900\\r\\n\\r\\n{'", "it ended within an answer"),
    ],
)
def test_a_program_that_ends(monkeypatch, tmp_path, script, why):
    program = tmp_path / "service"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    assert missing(monkeypatch, str(program)) == f"Microsoft's T-SQL parser does not run ({program}: {why})."


@pytest.mark.microsoft_parser
def test_answers_are_of_their_questions():
    program = tools_service.find()
    assert program
    with tools_service.ToolsService(program) as parser:
        assert parser.errors("SELECT 1;\nGO\nCREATE PROCEDURE p AS SELECT N'é';\nGO\n") == []
        assert parser.errors("SELECT FROM") != []
        assert parser.errors("SELECT 1") == []

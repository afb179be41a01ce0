"""An error that nobody foresaw: one sentence, a log without secrets, an exit code of its own."""

import re
from pathlib import Path

import click
import pytest
from support.command_line import stallmark

from stallmark.cli.common import UNEXPECTED
from stallmark.cli.main import main


@pytest.fixture
def broken(monkeypatch):
    @click.command()
    def command():
        raise KeyError("hunter2-and-more")

    monkeypatch.setitem(main.commands, "list", command)
    monkeypatch.setenv("PGPASSWORD", "hunter2-and-more")


def test_an_unforeseen_error_is_logged_without_secrets(broken, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    result = stallmark("list")
    assert result.exit_code == UNEXPECTED == 70
    assert "Traceback" not in result.output and result.output.count("KeyError") == 1
    [log] = tmp_path.rglob("error-*.log")
    assert str(log) in result.output.replace("\n", "")
    text = log.read_text()
    assert "Traceback" in text and "test_crash_log.py" in text and "hunter2" not in text
    assert log.stat().st_mode & 0o077 == 0


def test_without_a_folder_for_logs_it_is_a_temporary_file(broken, monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    monkeypatch.setenv("HOME", str(file))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = stallmark("list")
    assert result.exit_code == UNEXPECTED
    [log] = tmp_path.glob("error-*.log")
    assert "Traceback" in log.read_text()


def test_a_wrong_command_line_is_no_mistake_of_stallmark(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    result = stallmark("list", "--nothing")
    assert result.exit_code == 2 and re.search("No such option", result.output)
    assert not list(Path(tmp_path).rglob("error-*.log"))


class NotForeseen(BaseException):
    """An exception that is no Exception. Libraries in Rust raise such ones where they fail."""


def test_without_any_place_for_a_log_it_is_shown_and_the_code_is_the_same(broken, monkeypatch):
    monkeypatch.setattr("stallmark.cli.exit_codes.write_crash_log", lambda _: None)
    result = stallmark("list")
    assert result.exit_code == UNEXPECTED
    assert "Traceback" in result.stderr and "hunter2" not in result.stderr


def test_an_error_that_is_no_exception_is_one_all_the_same(monkeypatch, tmp_path):
    @click.command()
    def command():
        raise NotForeseen

    monkeypatch.setitem(main.commands, "list", command)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert stallmark("list").exit_code == UNEXPECTED

"""Bars on a terminal, lines elsewhere."""

import io

import pytest
from rich.console import Console
from support.simulated_time import Clock

from stallmark.experiment import progress as module
from stallmark.experiment.build_progress import show_build
from stallmark.experiment.progress import Show
from stallmark.loaders.load import BuildProgress


def console(terminal: bool, width: int = 80) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, _environ={"TERM": "xterm"})


def written(show: Show) -> str:
    return show.console.file.getvalue()


def test_without_a_terminal_there_are_lines_and_no_control_characters(monkeypatch):
    show = Show(console(terminal=False))
    with show.bar("[1/2] small: running", 10):
        show.advance(1, "too early to be said")
        monkeypatch.setattr(module, "PLAIN_EVERY_S", 0)
        show.advance(5, "measuring, 3 users, 100 TPS")
    lines = written(show).splitlines()
    assert lines[0] == "[1/2] small: running: measuring, 3 users, 100 TPS, about 5 seconds left"
    assert lines[1].startswith("[1/2] small: running: done in ")
    assert len(lines) == 2 and "\x1b" not in written(show)


def test_lines_say_how_long_it_takes_yet(monkeypatch):
    show = Show(console(terminal=False))
    monkeypatch.setattr(module, "PLAIN_EVERY_S", 20)
    monkeypatch.setattr(module, "time", Clock(0, 100, 130))
    with show.bar("Building", None):
        show.advance(1_000, "load", 10_000)
        show.advance(4_000, "load", 10_000)
    assert "load, about 1 minute left" in written(show).splitlines()[1]


def test_work_by_the_clock_takes_as_long_as_planned_though_it_began_late(monkeypatch):
    show = Show(console(terminal=False))
    monkeypatch.setattr(module, "time", Clock(0, 0, 20, 25))
    with show.bar("Running", 26):
        show.advance(0, "starting")
        show.advance(2, "measuring")
    assert "measuring, about 24 seconds left" in written(show).splitlines()[0]


def test_lines_are_not_broken_in_a_file():
    show = Show(console(terminal=False, width=20))
    show.say("a sentence that is longer than twenty characters")
    assert written(show) == "a sentence that is longer than twenty characters\n"


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_a_bar_and_its_note_stay_in_one_line_of_a_terminal(width):
    show = Show(console(terminal=True, width=width))
    with show.bar("[5/5] 20 %, this machine's own disk: running", 10):
        show.advance(5, "measuring, 30 users")
        rendered = show.console.render_lines(show._progress.get_renderable())
    assert len(rendered) == 1
    text = "".join(segment.text for segment in rendered[0])
    assert "measuring, 30 users" in text and "━" in text
    assert written(show).splitlines()[-1].strip() or width < 60


def test_a_bar_that_failed_leaves_no_line_that_it_was_done():
    show = Show(console(terminal=False))
    with pytest.raises(RuntimeError), show.bar("loading", None):
        raise RuntimeError
    assert "done" not in written(show)


def test_a_build_says_what_it_does(monkeypatch):
    monkeypatch.setattr(module, "PLAIN_EVERY_S", 0)
    show = Show(console(terminal=False))
    with show_build(show, "Building bank (branches 1)") as report:
        report(BuildProgress("load", 50_000, 100_011, 5_000_000))
    assert written(show).startswith("Building bank (branches 1): load, 50,000 rows, 4.77\u00a0MiB\n")

"""Text that others chose: nothing in it acts, wherever it goes."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.markup import escape

from stallmark.cli.output import Terminal
from stallmark.redact import markdown, visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("10 % of the data, 3 µs – naïve 中文 🙂\tand\nmore", None),
        ("\x1b[31mred\x1b[0m", "␛[31mred␛[0m"),
        ("\x1b]0;title\x07", "␛]0;title␇"),
        ("\x9b31m \x7f \x85", "�31m ␡ �"),
        ("\u202egnp.exe\u2066", "�gnp.exe�"),
        ("one\r\ntwo\rthree", "one\ntwo␍three"),
        ("half \ud800 and \U000e0041tag\ufeff", "half � and �tag�"),
    ],
)
def test_what_acts_is_shown(text, shown):
    assert visible(text) == (text if shown is None else shown)


@given(st.text())
def test_what_shows_stays_as_it_is(text):
    once = visible(text)
    assert visible(once) == once
    once.encode()
    assert not any(ord(one) < 32 and one not in "\t\n" for one in once)


LEFT_OUT = r"[\\␇␈␋␌␍]"
"""By rich: some control characters, and some backslashes before brackets."""


@given(st.text())
def test_a_terminal_shows_text_and_nothing_else_whatever_it_is(text):
    for content in (text, f"[bold]{text}", f"\\[/{text}"):
        drawn = io.StringIO()
        Terminal(file=drawn, width=80).print(escape(content), soft_wrap=True, highlight=False, emoji=False)
        shown, wanted = ("".join(re.sub(LEFT_OUT, "", one).split()) for one in (drawn.getvalue(), visible(content)))
        assert shown == wanted


def test_colours_of_our_own_stay_on_a_terminal():
    drawn, blinking = io.StringIO(), escape("\x1b[5m")
    Terminal(file=drawn, width=80, force_terminal=True, color_system="standard").print(
        f"[red]a {blinking}[/]", highlight=False
    )
    assert drawn.getvalue() == "\x1b[31ma ␛[5m\x1b[0m\n"


WHAT_ACTS = [
    "![](http://evil.example/?a)", "[a](http://evil.example)", "<http://evil.example>", "http://evil.example",
    "www.evil.example", "@all", "a@b.example", "#12", "!12", "<img src=x onerror=y>", "&lt;", "`a`", "**a**", "_a_",
    "~~a~~", "a | b", "$a$", "\\[a](x)", "[a]: http://x", "a\n# b", "a\n\n- b", "https://x", "HTTP://X", "mailto:a@b",
    "\u202e[", "a\\", "|`*",
]  # fmt: skip


@pytest.mark.parametrize("text", WHAT_ACTS)
def test_markdown_shows_text_and_nothing_else(text):
    parser = MarkdownIt("gfm-like", {"linkify": False}).enable(["table", "strikethrough"])
    said = markdown(text)
    inline = next(one for one in parser.parse(f"- **name**: {said}.") if one.type == "inline")
    kinds = {one.type for one in inline.children or []}
    assert kinds <= {"text", "text_special", "strong_open", "strong_close"}
    shown = "".join(one.content for one in inline.children or []).replace("\u2060", "")
    assert shown == "name: " + visible(text).replace("\n", " ") + "."
    for word in ("http://", "https://", "www.", "@a", "@b", "#1", "!1", "mailto:a"):
        assert word not in said.lower()
    table = parser.parse(f"| a | b |\n|---|---|\n| {said} | c |")
    assert [one.type for one in table].count("td_open") == 2

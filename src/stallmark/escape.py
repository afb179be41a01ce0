"""Text that people or servers chose, made harmless for where it goes: a terminal, Markdown, a spreadsheet.

HTML, SVG, JSON and Prometheus' format are escaped by the libraries that write them, after `visible`.
"""

import re

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters, but for the tab and the line feed
    "\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"  # direction, width
    "\ud800-\udfff]"  # halves of characters
)


def visible(text: str) -> str:
    """Return text with a picture of each character that acts and does not show: that moves the cursor, changes colours
    or turns the direction of reading."""
    return _UNSEEN.sub(_picture, text.replace("\r\n", "\n"))


def _picture(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "�"


_APART = "\u2060"
"""Joins what stands around it, and shows nothing: trackers do not take an address or a name with it in it for one."""
_MARKS = re.compile(r"([\\`*_\[\]|~$])")
_LINKS = re.compile(r"\b(https?:|ftp:|mailto:|xmpp:|www(?=\.))", re.I)
_NAMED = re.compile(r"([@#!%^&])(?=\w)")


def markdown(text: str) -> str:
    """Return text for one line of Markdown that stays text: no mark-up, no HTML, no links, nobody is called."""
    one_line = _LINKS.sub(rf"\1{_APART}", _NAMED.sub(rf"\1{_APART}", visible(text).replace("\n", " ")))
    html = one_line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _MARKS.sub(r"\\\1", html)


FORMULA = r"^[=+\-@\t\r]"
"""The beginning of a cell that a spreadsheet takes for a formula, unless it is a FIGURE."""
FIGURE = r"^[-+]?\d+([.,]\d+)?( ?%)?$"


def spreadsheet(text: str) -> str:
    """Return text for a cell that no spreadsheet takes for a formula."""
    return f"'{text}" if re.match(FORMULA, text) and not re.match(FIGURE, text) else text

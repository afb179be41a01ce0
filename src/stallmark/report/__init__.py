"""Reports: from the summary of an analysis, where nothing is measured or judged, to files that are replaced whole. An
impossible target is refused before the work.
"""

import os
from pathlib import Path

from stallmark.errors import StallmarkError, WrongOption
from stallmark.record.files import refuse_unwritable, replacing
from stallmark.redact import visible

SUFFIXES = (".svg", ".png")
"""Suffixes of a summary for a slide."""


def refuse_target(target: Path, replace: bool = True) -> None:
    """Raise StallmarkError if `target` cannot become a file. With `replace` it may not be a device (/dev/null) either,
    which an administrator would lose."""
    if str(target) == "-":
        raise WrongOption("- is standard output, and this output needs a file: name one.")
    if target.is_dir():
        raise StallmarkError(f"{target} is a folder: name a file in it.")
    if replace and target.exists() and not target.is_file():
        raise StallmarkError(f"{target} is not a file that can be replaced: name another.")
    # A device or a pipe is opened in its place; no file is made beside it.
    if replace or not target.exists():
        refuse_unwritable(target.parent, f"name another place for {target.name}")
    elif not os.access(target, os.W_OK):
        raise StallmarkError(f"{target} cannot be written by this user: name another file.")


def write_whole(content: str | bytes, target: Path) -> Path:
    """Write to `target` (created with its folders, replaced whole) and return it. In a text each character shows."""
    refuse_target(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as file:
        file.write(visible(content).encode() if isinstance(content, str) else content)
    return target


def refuse_slide(target: Path) -> None:
    """Raise StallmarkError if `target` cannot become a summary for a slide."""
    refuse_target(target)
    if target.suffix.lower() not in SUFFIXES:
        raise WrongOption(f"{target}: a summary is written as {' or '.join(SUFFIXES)}: name the file so.")

"""The hook that reads the message of a commit."""

import shutil
import subprocess
from pathlib import Path

import pytest

HOOK = Path(__file__).parents[1] / ".githooks" / "commit-msg"
pytestmark = pytest.mark.skipif(not shutil.which("sh"), reason="needs a POSIX shell")


def refusal(folder: Path, message: str) -> str | None:
    """Return the hook's words on a message, or None if it accepts the message."""
    file = folder / "message"
    file.write_text(message, encoding="utf-8")
    done = subprocess.run(["sh", HOOK, file], capture_output=True, text=True)
    assert bool(done.returncode) == bool(done.stderr)
    return done.stderr or None


@pytest.mark.parametrize(
    "message",
    [
        "Refuse query records with an unknown phase\n",
        "docs: Name the limits of a replay\n\nThey are asked for often; so far nothing had them.\n",
        "Show " + "×" * 67,
        "Merge branch 'main' into a branch whose name is far longer than a subject may be otherwise\n",
    ],
)
def test_a_subject_in_the_imperative_is_taken(tmp_path, message):
    assert refusal(tmp_path, message) is None


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ("Show " + "×" * 68, "72 characters"),
        ("Refuse bad waits; drop a message", "split it"),
        ("A record with a bad phase is refused", "verb"),
        ("Refuse bad waits.", "full stop"),
        ("Refuse bad waits\nand drop a message\n", "empty"),
        ("\nRefuse bad waits\n", "begin with the subject"),
    ],
)
def test_a_subject_that_is_none_is_refused_with_the_reason(tmp_path, message, words):
    assert words in (refusal(tmp_path, message) or "")

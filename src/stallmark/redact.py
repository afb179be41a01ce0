"""What a command of the operator's must not see, and what of its output no record may keep."""

import os
import re
import sys
from pathlib import Path
from urllib.parse import unquote

OURS = "STALLMARK_HOME"
"""The one variable of ours that a command may need: a lab's own command finds the lab by it."""

HIDDEN = "(hidden)"

SHORTEST = 6
"""Characters of a password that is looked for in an output: of a shorter one every other word would be hidden."""

_NAME = re.compile(
    r"(?<!ask)pass(w|phrase|code|_|$)|(?<!^)(?<!^old)pwd$|_pw$|secret|token|credential|"
    r"(api|private|access|account|storage|encryption)_?key|_auth$|^STALLMARK_",
    re.IGNORECASE,
)
"""Names of variables that may hold a password (SSHPASS, DB_PASS, GIT_PASSPHRASE …); PWD and OLDPWD are folders."""

_IN_URL = re.compile(r"(://[^/@\s:]*:)([^/@\s]+)@")
_WORD = "(password|passwd|pwd|secret|token)"
_IN_ARGUMENT = re.compile(rf"^-{{0,2}}{_WORD}=|^--?{_WORD}$", re.IGNORECASE)
_IN_OUTPUT = re.compile(rf"({_WORD}[ \t]*[=:][ \t]*)(\"[^\"]*\"|'[^']*'|[^\s,;]+)", re.IGNORECASE)


def has_secret(argument: str) -> bool:
    """Whether a command's argument holds a password, or is the name of one that follows."""
    return bool(_IN_URL.search(argument) or _IN_ARGUMENT.search(argument))


def environment() -> dict[str, str]:
    """Ours without variables that look like a password's, by name or by value, and with our own programs first:
    `stallmark array change` is this one."""
    kept = {name: value for name, value in os.environ.items() if not _is_secret(name, value)}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    return kept | {"PATH": path}


def without_secrets(text: str) -> str:
    """An output without the passwords that we were given, and without what it calls one itself."""
    for value in sorted(_known(), key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    text = _IN_URL.sub(rf"\1{HIDDEN}@", text)
    return _IN_OUTPUT.sub(rf"\1{HIDDEN}", text)


def _is_secret(name: str, value: str) -> bool:
    return name != OURS and bool(_NAME.search(name) or _IN_URL.search(value) or _IN_OUTPUT.search(value))


def _known() -> set[str]:
    """Passwords in our environment: whole values, and those within URLs."""
    held = [(name, value) for name, value in os.environ.items() if _is_secret(name, value)]
    whole = [value for name, value in held if not name.upper().startswith("STALLMARK_")]
    within = [match[2] for _, value in held for match in _IN_URL.finditer(value)]
    within += [match[3].strip("\"'") for _, value in held for match in _IN_OUTPUT.finditer(value)]
    return {one for one in (*whole, *within, *map(unquote, within)) if len(one) >= SHORTEST}

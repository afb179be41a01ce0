"""One thing that a selftest tries, and what came of it."""

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stallmark.cli.common import FAILED, INCOMPLETE
from stallmark.errors import CallFailed, ServerLost, StallmarkError, in_words


@dataclass(frozen=True)
class SelftestResult:
    """`state` is "works", "off" (it cannot be had on this server, and why) or "failed"."""

    what: str
    state: Literal["works", "off", "failed"]
    said: str
    exit_code: int = 0


class Wrong(Exception):
    """Something is not as it must be; carries its exit code."""

    def __init__(self, said: str, exit_code: int = FAILED):
        super().__init__(said)
        self.exit_code = exit_code


def attempt(what: str, check: Callable[[], str]) -> SelftestResult:
    try:
        return SelftestResult(what, "works", check())
    except Wrong as wrong:
        return SelftestResult(what, "failed", sentence(wrong), wrong.exit_code)
    except ServerLost as lost:
        return SelftestResult(what, "failed", sentence(lost), INCOMPLETE)
    except (StallmarkError, CallFailed, OSError) as error:
        return SelftestResult(what, "failed", sentence(error), FAILED)
    except Exception as error:  # whatever a driver raises on a server nobody has tried: it belongs into the issue
        frame = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(frame.filename).name}:{frame.lineno}"
        return SelftestResult(what, "failed", f"{type(error).__name__} in {where}: {sentence(error)}", FAILED)


def sentence(error: Exception) -> str:
    return " ".join(in_words(error).split()) or type(error).__name__

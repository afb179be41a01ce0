"""Errors of servers, in words that are the same for every engine."""

import os
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any


class StallmarkError(Exception):
    """A sentence for the user: what happened and what to do. Shown without a traceback, its notes behind it."""


class WrongOption(StallmarkError):
    """A mistake in the command's options, independent of the machine and its files."""


class NoConnection(StallmarkError):
    """The server takes no connection, for now or for good."""


class RunLockTaken(StallmarkError):
    """Another run has the lock that one run at a time holds."""


class ServerLost(StallmarkError):
    """The server restarted, failed over, went away or became read-only under a run."""


class NotGivenBack(StallmarkError):
    """A server's settings are still as a run had changed them."""


class ErrorClass(StrEnum):
    """The classes by which failed calls are counted. `retryable` ones are tried again with the same inputs."""

    DEADLOCK = "deadlock"
    LOCK_TIMEOUT = "lock timeout"
    SERIALIZATION = "serialization"
    TIMEOUT = "timeout"
    CONNECTION_LOST = "connection lost"
    UNKNOWN_OUTCOME = "unknown outcome"
    OUT_OF_SPACE = "out of space"
    OUT_OF_MEMORY = "out of memory"
    RESOURCE_LIMIT = "resource limit"
    STORAGE = "storage"
    MISSED = "missed"
    """A transaction that was due and never sent: no session was free in time, or its last execution had not ended."""
    OTHER = "other"

    @property
    def retryable(self) -> bool:
        return self in (ErrorClass.DEADLOCK, ErrorClass.LOCK_TIMEOUT, ErrorClass.SERIALIZATION)

    @property
    def fatal(self) -> bool:
        """The storage lost or damaged data: the run stops and gives no verdict."""
        return self is ErrorClass.STORAGE


class CallFailed(Exception):
    """A statement failed on the server. Carries the class it is counted under and the server's own code."""

    def __init__(self, kind: ErrorClass, code: str, message: str):
        super().__init__(f"{kind} ({code}): {message}")
        self.kind = kind
        self.code = code
        self.message = message

    def __reduce__(self):
        # Unpickled by default, an exception gets its message alone, and this one needs three arguments.
        return CallFailed, (self.kind, self.code, self.message)


def as_reason(message: object) -> str:
    """Return an error, or a server's words, as the end of a sentence: without a full stop."""
    text = _system_message(message) if isinstance(message, OSError) else str(message)
    return text.rstrip(".")


def as_sentence(message: object) -> str:
    """Return words with a full stop, unless they end with a mark."""
    text = str(message)
    return text if text.endswith(("?", "!")) else f"{as_reason(text)}."


def mistake(problem: Mapping[str, Any]) -> str:
    """Return the words of one of pydantic's errors: those of the ValueError that a model raised, or its own."""
    # pydantic's own text would put "Value error, " before the message.
    return str(problem.get("ctx", {}).get("error") or problem["msg"])


def in_words(error: BaseException) -> str:
    """Return the message, a sentence, with the notes that were added to the error on its way."""
    notes = getattr(error, "__notes__", ())
    # Notes are sentences, so the message before them must be one as well; a system's message has no full stop.
    text = as_sentence(as_reason(error)) if notes or isinstance(error, OSError) else str(error)
    return " ".join([text, *notes])


def with_path(error: OSError, path: Path) -> OSError:
    """Return an error of the system with its own words and with the file, which some libraries leave out."""
    return OSError(error.errno, os.strerror(error.errno), str(path)) if error.errno else OSError(f"{path}: {error}")


def _system_message(error: OSError) -> str:
    """Return the system's own message, with the file it is about."""
    message = error.strerror or str(error)
    return f"{error.filename}: {message}" if error.filename else message

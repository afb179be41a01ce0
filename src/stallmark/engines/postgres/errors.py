"""PostgreSQL's errors as ours."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg

from stallmark.errors import CallFailed, ErrorClass

# Appendix A of the PostgreSQL manual; a two-character key is a whole class.
_ERROR_CLASSES = {
    "40P01": ErrorClass.DEADLOCK,
    "55P03": ErrorClass.LOCK_TIMEOUT,
    "40001": ErrorClass.SERIALIZATION,
    "57014": ErrorClass.TIMEOUT,
    "53100": ErrorClass.OUT_OF_SPACE,
    "53200": ErrorClass.OUT_OF_MEMORY,
    "53300": ErrorClass.RESOURCE_LIMIT,  # too many connections
    "53400": ErrorClass.RESOURCE_LIMIT,  # a limit that is configured
    "58030": ErrorClass.STORAGE,
    "XX001": ErrorClass.STORAGE,
    "XX002": ErrorClass.STORAGE,
    "57P01": ErrorClass.CONNECTION_LOST,
    "57P02": ErrorClass.CONNECTION_LOST,
    "57P03": ErrorClass.CONNECTION_LOST,
    "25006": ErrorClass.CONNECTION_LOST,  # read-only: it was the primary, or was set so
    "08": ErrorClass.CONNECTION_LOST,
}


def classify(code: str) -> ErrorClass:
    """Return the class of a five-character SQLSTATE."""
    return _ERROR_CLASSES.get(code) or _ERROR_CLASSES.get(code[:2]) or ErrorClass.OTHER


@contextmanager
def as_call_failed() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        code = error.sqlstate or ""
        kind = classify(code) if code else ErrorClass.CONNECTION_LOST
        raise CallFailed(kind, code or "08006", first_line(error)) from None


def first_line(text: object) -> str:
    lines = str(text).strip().splitlines()
    return lines[0].rstrip(".") if lines else "no reason given"

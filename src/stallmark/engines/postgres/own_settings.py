"""The settings that every session of ours has, whatever the server, the database or the role gives to sessions."""

import os
from collections.abc import Mapping

ENDING = ("statement_timeout", "lock_timeout", "idle_session_timeout", "idle_in_transaction_session_timeout")
"""Settings that end a statement or a session, on every version. Ours wait for as long as it takes."""
SINCE_17 = "transaction_timeout"
"""One more. An older server refuses a session that asks for it."""

_OWN = {name: "0" for name in ENDING} | {"default_transaction_isolation": r"read\ committed"}
_USUAL = {
    "search_path": '"$user",public',  # another one may hide functions of pg_catalog, and takes schemas off names
    "DateStyle": "ISO",  # psycopg reads no other
    "IntervalStyle": "postgres",
}
"""The URL may set these otherwise."""
NAMES = frozenset((*_OWN, *_USUAL, SINCE_17))


def options(given: object, *, is_before_17: bool) -> str:
    """Return the start-up options of our sessions: with those that the URL, or PGOPTIONS, gives between."""
    own = _OWN if is_before_17 else _OWN | {SINCE_17: "0"}
    parts = _texts(_USUAL), str(given or os.environ.get("PGOPTIONS", "")), _texts(own)
    return " ".join(filter(None, parts))


def _texts(settings: Mapping[str, str]) -> str:
    return " ".join(f"-c {name}={value}" for name, value in settings.items())

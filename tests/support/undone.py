"""Changes to a database that a session sees and that are undone again, on every engine."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

from stallmark.engines.base import Isolation, Session

_numbers = count()


@contextmanager
def undone(session: Session, *statements: str) -> Iterator[None]:
    """Inside, what the session is asked it answers as if these had been executed."""
    with session.transaction(Isolation.READ_COMMITTED):
        for statement in statements:
            name = f"undone_{next(_numbers)}"
            session.prepare(name, statement)
            session.call(name, ())
        yield
        session.roll_back()

"""The loss of the server as the reason of what failed by it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from stallmark.errors import CallFailed, ServerLost, StallmarkError, as_sentence, in_words


@contextmanager
def naming_loss(check: Callable[[], None]) -> Iterator[None]:
    """Raise ServerLost in place of an error if the server was lost: what became of it, then what failed. `check`: as
    `Engine.hold` yields it."""
    try:
        yield
    except ServerLost:
        raise
    except (StallmarkError, CallFailed, OSError) as failed:
        try:
            check()
        except ServerLost as lost:
            raise ServerLost(f"{as_sentence(lost)} {as_sentence(in_words(failed))}") from failed
        raise

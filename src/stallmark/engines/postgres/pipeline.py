"""Several prepared statements in one round trip: libpq's pipeline mode.

The interpreter's lock is released while the answer is waited for, as it is in a plain call. libpq itself would hold it.
"""

import select
from collections.abc import Callable, Sequence
from functools import partial

import psycopg
from psycopg import pq

Statement = tuple[bytes, Sequence[bytes | None] | None]
"""The name of a prepared statement, and its parameters."""

SYNC = int(pq.ExecStatus.PIPELINE_SYNC)  # the enumeration compares slowly
_ALIVE = pq.ConnStatus.OK


class Pipeline:
    """The pipeline of a connection, which is in pipeline mode during a trip alone."""

    def __init__(self, connection: pq.abc.PGconn):
        self._connection = connection
        self._wait = _waiting_for(connection.socket)

    def trip(self, *parts: Sequence[Statement]) -> list[list[pq.abc.PGresult]]:
        """Send all parts, each a transaction by itself unless its statements say otherwise. Return the results of each,
        SYNC at the end of them: then it has been committed, unless one failed.

        What follows on a statement that failed is not executed, up to the end of its part. Where the connection is lost
        results are missing, that of SYNC at least. Raise psycopg.OperationalError where nothing was sent.
        """
        connection = self._connection
        connection.enter_pipeline_mode()
        for part in parts:
            for name, parameters in part:
                connection.send_query_prepared(name, parameters)  # type: ignore[arg-type]
            connection.pipeline_sync()
        found = [self._results() for _ in parts]
        if connection.status == _ALIVE:
            connection.exit_pipeline_mode()
        return found

    def _results(self) -> list[pq.abc.PGresult]:
        """Return the results of one part."""
        connection, wait = self._connection, self._wait
        found: list[pq.abc.PGresult] = []
        try:
            while True:
                while connection.is_busy():
                    wait()
                    connection.consume_input()
                result = connection.get_result()
                if result is None:  # after each statement
                    if connection.status != _ALIVE:
                        return found
                else:
                    found.append(result)
                    if result.status == SYNC:
                        return found
        except psycopg.OperationalError:
            while result := connection.get_result():
                found.append(result)
            return found


def _waiting_for(socket: int) -> Callable[[], object]:
    """Return a function that waits until the socket has something to read."""
    if not hasattr(select, "poll"):  # Windows
        return partial(select.select, [socket], [], [])
    poll = select.poll()
    poll.register(socket, select.POLLIN)
    return poll.poll

"""A database as it would be with something wrong in it: each connection puts it in and never commits."""

from stallmark.engines.postgres.embedded.engine import EmbeddedEngine


class Injected(EmbeddedEngine):
    def __init__(self, good: EmbeddedEngine, database: str, wrong: str):
        super().__init__(good.server, database)
        self._wrong = wrong

    def connect(self, application: str = "stallmark-collector"):
        connection = super().connect(application)
        connection.autocommit = False
        connection.execute(self._wrong)
        return connection

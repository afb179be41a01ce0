"""A session on a server, as messages name it."""

from typing import NamedTuple


class ServerSession(NamedTuple):
    """Its number on the server, and what is known of it: an empty text is not known."""

    number: int
    application: str
    user: str
    client: str

    @property
    def is_ours(self) -> bool:
        return self.application.startswith("stallmark-")

    def __str__(self) -> str:
        user = f"of {self.user}" if self.user else ""
        client = f"from {self.client}" if self.client else ""
        facts = ", ".join(filter(None, (self.application, user, client)))
        return f"session {self.number}{f' ({facts})' if facts else ''}"

"""The statements that give tempdb its files back after a scenario has placed them.

Not done at the end of a run: a file's new path holds from the server's next start on, so a run that gave it back would
never have measured it. The statements are kept in a journal until somebody has run them and removed it.
"""

from stallmark.engines.mssql.journal import Journal
from stallmark.engines.mssql.server import Server


def note(server: Server, statements: list[str]) -> None:
    """Keep the statements; those of an earlier note stay, because only it knew the original."""
    _journal(server).note({"statements": statements})


def noted(server: Server) -> list[str]:
    return _journal(server).read().get("statements", [])


def how_to_give_back(server: Server, statements: list[str]) -> str:
    return (
        f"To give tempdb back what it had: {'; '.join(statements)}; restart the server, and "
        f"{_journal(server).how_to_remove}."
    )


def _journal(server: Server) -> Journal:
    return Journal(server, "tempdb")

"""What gives tempdb its files back after a scenario has placed them.

Not done at the end of a run: a file's new path holds from the server's next start on, so a run that gave it back would
never have measured it. The statements are kept in a journal until somebody has run them and removed it.
"""

from typing import TYPE_CHECKING

from stallmark.engines.mssql.journal import Journal

if TYPE_CHECKING:
    from stallmark.engines.mssql.engine import MssqlEngine


def note(engine: "MssqlEngine", statements: list[str]) -> None:
    """Keep the statements; those of an earlier note stay, because only it knew the original."""
    _journal(engine).note({"statements": statements})


def noted(engine: "MssqlEngine") -> list[str]:
    return _journal(engine).read().get("statements", [])


def how_to_give_back(engine: "MssqlEngine", statements: list[str]) -> str:
    return (
        f"To give tempdb back what it had: {'; '.join(statements)}; restart the server, and "
        f"{_journal(engine).how_to_remove}."
    )


def _journal(engine: "MssqlEngine") -> Journal:
    return Journal(engine, "tempdb")

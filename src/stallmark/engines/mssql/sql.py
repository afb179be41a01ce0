"""Names and texts quoted for T-SQL."""


def name(text: str) -> str:
    """A delimited identifier."""
    return f"[{text.replace(']', ']]')}]"


def text(value: str) -> str:
    """A Unicode constant."""
    return "N'" + value.replace("'", "''") + "'"

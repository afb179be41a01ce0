"""The statements that stand in files of their own beside this module, and how names and texts are quoted in others."""

from importlib.resources import files


def statement(name: str) -> str:
    return files(__package__).joinpath(f"{name}.sql").read_text()


def name(text: str) -> str:
    """A delimited identifier."""
    return f"[{text.replace(']', ']]')}]"


def text(value: str) -> str:
    """A Unicode constant."""
    return "N'" + value.replace("'", "''") + "'"

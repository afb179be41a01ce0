"""The statements that stand in files of their own beside this module."""

from importlib.resources import files


def statement(name: str) -> str:
    return files(__package__).joinpath(f"{name}.sql").read_text()

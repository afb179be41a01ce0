"""Collectors that ask PostgreSQL 16 and later.

A query named `<collector>.<major>.sql` serves that major version and all later ones up to the next file.
"""

import re
from importlib.resources import files


def statement(name: str, major: int) -> str | None:
    """The text of the newest query of this name that a server of this major version understands."""
    versions = {
        int(m[1]): path for path in files(__name__).iterdir() if (m := _file(name).fullmatch(path.name))
    }
    fitting = [version for version in versions if version <= major]
    return versions[max(fitting)].read_text() if fitting else None


def oldest(name: str) -> int:
    """The oldest major version that a query of this name exists for."""
    return min(int(m[1]) for path in files(__name__).iterdir() if (m := _file(name).fullmatch(path.name)))


def _file(name: str) -> re.Pattern[str]:
    return re.compile(rf"{name}\.(\d+)\.sql")

"""The path of `tpchgen-cli`, which makes the warehouse's data for its loader and for the oracle of its answers."""

import shutil
import sysconfig

NAME = "tpchgen-cli"


def found() -> str | None:
    """Return its path, beside our own programs or where commands are looked for; None where it is not installed."""
    return shutil.which(NAME, path=sysconfig.get_path("scripts")) or shutil.which(NAME)

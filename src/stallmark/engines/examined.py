"""One line of the doctor's list: what was examined of this machine or a server, and what was found."""

from dataclasses import dataclass
from typing import Literal

Availability = Literal["ok", "limited", "missing"]
"""`limited`: something will not be measured or done; `missing`: it will not run."""


@dataclass(frozen=True)
class Examined:
    what: str
    state: Availability
    sentence: str

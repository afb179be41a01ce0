"""The change of a load by hand while it runs, as an option of `stallmark run` adds it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stallmark.driver.load import LocustPage
    from stallmark.scenarios.model import AnyScenario


class LoadByHand(ABC):
    """The change of a load by hand, on Locust's page."""

    page: "LocustPage"

    @abstractmethod
    def refuse(self, scenario: "AnyScenario") -> None:
        """Raise StallmarkError if nobody can change the load of a scenario so."""

    @abstractmethod
    def announce(self, say: Callable[[str], None]) -> None:
        """Say where the page is, once it is there."""

    @abstractmethod
    def most_users(self, planned: int) -> int:
        """Return the most users that somebody may ask for, of all loads together, where a variant has `planned`."""

"""Run a scenario: prepare every variant, drive it, record it.

Here are the companions of an experiment: what the options of capabilities add to `stallmark run`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from stallmark.driver.load import ExpectedMachines, LocustPage
    from stallmark.engines.base import Engine
    from stallmark.experiment.progress import Show
    from stallmark.experiment.target import Target
    from stallmark.scenarios import Titled
    from stallmark.scenarios.model import AnyScenario


@dataclass(frozen=True)
class QuickScenario:
    """A scenario that options describe, in place of a file."""

    document: Mapping[str, Any]


class LoadMachines(ABC):
    """The machines that an experiment's load comes from, in place of this one."""

    count: int

    @abstractmethod
    def refuse(self, scenario: "AnyScenario", engine: "Engine") -> None:
        """Raise StallmarkError if they could not reach the server or this machine, or would have nothing to do."""

    @abstractmethod
    def expected_machines(self, engine: "Engine") -> "ExpectedMachines":
        """Return the machines that the driver waits for, with the facts that hold once the database exists."""


class Follower(ABC):
    """A follower of an experiment from the moment that its folder is known."""

    @abstractmethod
    def begin(self, folder: Path, scenario: "AnyScenario", show: "Show") -> None: ...

    @abstractmethod
    def end(self, is_complete: bool, because: str) -> None: ...


class OwnExperiment(ABC):
    """An experiment of a capability's own kind, in place of the runs that the core makes of a scenario."""

    @abstractmethod
    def takes(self, scenario: "Titled") -> bool:
        """Return True if a scenario is of this kind. Raise StallmarkError if the options do not fit the scenario."""

    @abstractmethod
    def run(
        self, scenario: Any, target: "Target", out: Path, show: "Show", machines: LoadMachines | None, as_json: bool
    ) -> None:
        """Make the experiment of a scenario that it takes, and show it; exit if it is incomplete."""


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

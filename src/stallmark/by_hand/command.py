"""The options of a run whose load somebody changes by hand, on Locust's page."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from stallmark.cli.options import page_option
from stallmark.errors import StallmarkError
from stallmark.experiment import LoadByHand

if TYPE_CHECKING:
    from stallmark.scenarios.model import AnyScenario
    from stallmark.web_access import PageAddress

TIMES_PLANNED = 2
"""Users that somebody may ask for if nobody says how many: as a multiple of the planned users."""


class OnLocustPage(LoadByHand):
    """A load that somebody changes on Locust's page at an address, up to `most` users."""

    def __init__(self, address: "PageAddress", most: int | None):
        from stallmark.driver.load import LocustPage
        from stallmark.web_access import Access

        self._access, self._most = Access(address), most
        self.page = LocustPage(address.host, address.port, self._access.token)

    def refuse(self, scenario: "AnyScenario") -> None:
        from stallmark.experiment.preflight import users_loads
        from stallmark.scenarios.model import TimedScenario
        from stallmark.web_access import refuse_port_in_use

        name = scenario.name
        if not isinstance(scenario, TimedScenario) or not (loads := users_loads(scenario)):
            raise StallmarkError(f"{name} has no users whose number could be changed: leave --locust-web out.")
        if any(load.arrival_plan().kind != "closed" for load in loads):
            raise StallmarkError(
                f"{name} starts transactions at a rate, which more users do not raise: leave --locust-web out, or the "
                "rate."
            )
        if any(scenario.searched_of(variant) for variant in scenario.variants):
            raise StallmarkError(
                f"{name} searches for a ceiling, which changes the load by itself: leave --locust-web out."
            )
        refuse_port_in_use(self.page.host, self.page.port, "Locust's page")

    def announce(self, say: Callable[[str], None]) -> None:
        say(f"Locust's page: {self._access.url}")

    def most_users(self, planned: int) -> int:
        return max(planned, self._most or TIMES_PLANNED * planned)


@click.command()
@page_option(
    "--locust-web", help="Change the users by hand, on Locust's page; such a run is exploratory and has no verdict."
)
@click.option(
    "--most-users", type=click.IntRange(1), metavar="N",
    help="Maximum number of users on Locust's page [default: twice the planned number].",
)  # fmt: skip
def by_hand(locust_web: "PageAddress | None", most_users: int | None) -> OnLocustPage | None:
    if most_users and not locust_web:
        raise click.UsageError("--most-users limits what Locust's page may ask for: add --locust-web 8089.")
    return OnLocustPage(locust_web, most_users) if locust_web else None

"""The search for a ceiling in place of fixed steps: `search: {of: users, from: 10, to: 400, tolerance: 5 %}`."""

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from stallmark.scenarios.pool_curve import Tolerance
from stallmark.scenarios.section import Section
from stallmark.stats.ceiling_search import Asked

MOST_USERS = 10_000
Level = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class Search(Section):
    """The highest number of users, or the highest rate of arrivals, at which the service level (`slo`) holds. A run
    then has a step for each level that is tried: it doubles, and halves the gap that is left."""

    model_config = ConfigDict(validate_by_name=True, serialize_by_alias=True)

    of: Literal["users", "rate", "load"]
    """`users`; the `rate` at which transactions arrive, per second; or, beside `loads`, the `load`: a multiple of the
    rates of all of them, of transactions and of queries."""
    from_: Annotated[Level, Field(alias="from")]
    """The level that is tried first."""
    to: Level
    """The highest level that is tried."""
    tolerance: Tolerance = 0.05
    """How close the level that holds and the one that breaks shall be in the end."""

    def mistakes(self) -> Iterator[str]:
        if self.from_ > self.to:
            yield f"from {self.from_:g} is above to {self.to:g}: a search goes upwards"
        if self.of == "users" and not (self.from_.is_integer() and self.to.is_integer() and self.to <= MOST_USERS):
            yield f"users come in whole numbers up to {MOST_USERS:,}: change from or to"

    def asked(self) -> Asked:
        return Asked(self.from_, self.to, self.tolerance, whole=self.of == "users", multiple=self.of == "load")

"""The load changed by hand: Locust's own page on the conductor of a run."""

from stallmark.capabilities import Capability

CAPABILITY = Capability(
    name="by_hand", options={"run": "stallmark.by_hand.command:by_hand"}, page="stallmark.by_hand.page:Page"
)

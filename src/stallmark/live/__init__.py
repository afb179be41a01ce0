"""The page that shows an experiment in a browser, while it runs and afterwards, and the metrics that it has for
Prometheus."""

from stallmark.capabilities import Capability, CommandEntry

_LIVE = "Show an experiment in a browser, from its records, even if it was started without --web."

CAPABILITY = Capability(
    name="live",
    commands=(CommandEntry("Measure", "live", _LIVE, "stallmark.live.command"),),
    options={"run": "stallmark.live.command:make_shown"},
)

"""Record the counters of a server in production, every 15 seconds, over one connection."""

from stallmark.capabilities import Capability, CommandEntry

_PROFILE = "Record the counters of a production server every 15 seconds, without changing anything."

CAPABILITY = Capability(
    name="profile", commands=(CommandEntry("Measure", "profile", _PROFILE, "stallmark.profile.command"),)
)

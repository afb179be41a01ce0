"""Record what a server in production does: its counters, every 15 seconds, over one connection."""

from stallmark.capabilities import Capability, CommandEntry

_PROFILE = "Record what a server in production does, every 15 seconds, and change nothing."

CAPABILITY = Capability(
    name="profile", commands=(CommandEntry("Measure", "profile", _PROFILE, "stallmark.profile.command"),)
)

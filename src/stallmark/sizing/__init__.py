"""Sizing: the share of a profile's load that new hardware, a candidate, carries, by a replay of its I/O and by stand-in
loads."""

from stallmark.capabilities import Capability, CommandEntry

_SIZE = "Show which candidates carry the load of a PROFILE, with how much headroom, and their first limit."

CAPABILITY = Capability(
    name="sizing",
    commands=(CommandEntry("Judge", "size", _SIZE, "stallmark.sizing.command"),),
    options={"run": "stallmark.sizing.command:sizing"},
    scenario="stallmark.sizing.scenario:SizingScenario",
    estimate="stallmark.sizing.scenario:estimate_sizing",
    report="stallmark.sizing.document:SIZING",
    progress="stallmark.sizing.command:progress",
    wording=("stallmark.sizing.wording", "stallmark.sizing.untested"),
)

"""Sizing: the load of a profile against what new hardware, a candidate, carries of it, by a replay of its I/O and by
loads that stand in for its database."""

from stallmark.capabilities import Capability, CommandEntry

_SIZE = "Say which candidates carry the load of a PROFILE, with how much headroom, and what ends first."

CAPABILITY = Capability(
    name="sizing",
    commands=(CommandEntry("Judge", "size", _SIZE, "stallmark.sizing.command"),),
    options={"run": "stallmark.sizing.command:sizing"},
    scenario="stallmark.sizing.scenario:SizingScenario",
    estimate="stallmark.sizing.estimate:estimate_sizing",
    report="stallmark.sizing.command:show_candidate",
    progress="stallmark.sizing.command:progress",
    wording=("stallmark.sizing.wording", "stallmark.sizing.untested"),
)

"""Servers, arrays and trials of one's own: a SQL Server in a container, an emulated array as a block device, the
selftest."""

from stallmark.capabilities import Capability, CommandEntry

_GROUP = "Servers, arrays and load machines"
_SERVER = "Start, list and stop SQL Servers in containers."
_SELFTEST = "Try everything on a server in a few minutes and show what worked: the same as `stallmark doctor --deep`."
_ARRAY = "Create, list, inspect, change and destroy EMULATED arrays as block devices (Linux, as root)."

CAPABILITY = Capability(
    name="lab",
    commands=(
        CommandEntry(_GROUP, "server", _SERVER, "stallmark.lab.command"),
        CommandEntry(_GROUP, "selftest", _SELFTEST, "stallmark.lab.command"),
        CommandEntry(_GROUP, "array", _ARRAY, "stallmark.lab.command"),
    ),
    options={"doctor": "stallmark.lab.command:deep"},
    examine="stallmark.lab.command:examine",
)

"""Measurements from elsewhere that are put beside a run: files of Perfmon, iostat, sar or a storage array."""

from stallmark.capabilities import Capability, CommandEntry

_ATTACH = "Add measurements from elsewhere to a RUN: a FILE of Perfmon, iostat, sar or a storage array."

CAPABILITY = Capability(
    name="attach",
    commands=(CommandEntry("Measure", "attach", _ATTACH, "stallmark.attach.command"),),
    measurements="stallmark.attach.summary:read_external",
    section="stallmark.attach.section:section",
    wording=("stallmark.attach.wording",),
)

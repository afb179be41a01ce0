"""Probes: raw storage measured without a database."""

from stallmark.capabilities import Capability

CAPABILITY = Capability(name="probe", report="stallmark.probe.document:PROBES", wording=("stallmark.probe.wording",))

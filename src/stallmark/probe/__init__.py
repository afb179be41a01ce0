"""Probes: raw storage measured without a database."""

from stallmark.capabilities import Capability, CommandEntry

_PROBE = "Measure raw storage without a database, as SQLIO does, with fio (Windows: diskspd)."

CAPABILITY = Capability(
    name="probe",
    commands=(CommandEntry("Measure", "probe", _PROBE, "stallmark.probe.command"),),
    options={"run": "stallmark.probe.command:scenarios"},
    scenario="stallmark.probe.scenario:ProbeScenario",
    estimate="stallmark.probe.scenario:estimate_probes",
    report="stallmark.probe.document:PROBES",
    manifest="stallmark.probe.record:ProbeManifest",
    tables="stallmark.probe.record:TABLES",
    wording=("stallmark.probe.wording",),
)

"""Probes: raw storage, measured without a database, for its rates, its saturation, and changes over time."""

from stallmark.record.probe import Asked, ProbeResult, ProbeStep
from stallmark.storage.probe.measurement import block_device_of, in_steps, measure, result
from stallmark.storage.probe.patterns import OUTSTANDING, PATTERNS, SHORT_STEPS, find_patterns, steps_of
from stallmark.storage.probe.probe_file import LEAST_BYTES, ProbeFile, make_probe_file, refuse_little_space
from stallmark.storage.probe.tool import can_probe

__all__ = [
    "LEAST_BYTES",
    "OUTSTANDING",
    "PATTERNS",
    "SHORT_STEPS",
    "Asked",
    "ProbeFile",
    "ProbeResult",
    "ProbeStep",
    "block_device_of",
    "can_probe",
    "find_patterns",
    "in_steps",
    "make_probe_file",
    "measure",
    "refuse_little_space",
    "result",
    "steps_of",
]

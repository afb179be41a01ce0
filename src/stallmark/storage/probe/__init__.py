"""Probes: raw storage, measured without a database, for its rates, its saturation, and changes over time."""

from stallmark.record.probe import Asked, ProbeResult, ProbeStep
from stallmark.storage.probe.measurement import behind, in_steps, measure, result
from stallmark.storage.probe.patterns import OUTSTANDING, PATTERNS, SHORT_STEPS, find_patterns, steps_of
from stallmark.storage.probe.probe_file import LEAST_BYTES, ProbeFile, own_file, refuse_little_space
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
    "behind",
    "can_probe",
    "find_patterns",
    "in_steps",
    "measure",
    "own_file",
    "refuse_little_space",
    "result",
    "steps_of",
]

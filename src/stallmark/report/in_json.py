"""Summaries for machines (`--json`): every value of the analysis, and with each finding its sentence."""

import json
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from pydantic import BaseModel

from stallmark.analysis.finding import Finding
from stallmark.analysis.step_summary import (
    Bottleneck,
    Latency,
    ServerFigures,
    StepInterval,
    StepValidity,
    StorageFigures,
    Throughput,
    WaitFigures,
)
from stallmark.analysis.validity.gates import Gate
from stallmark.record.devices import DeviceLabel
from stallmark.report.text import gates, sentence
from stallmark.report.text.device import labelled

GROUPS: dict[type, dict[str, str]] = {
    StepInterval: {},
    Throughput: {},
    Latency: {"mean_ms": "latency_mean_ms", "percentiles_ms": "latency_ms", "judged_ms": "judged_latency_ms"},
    StorageFigures: {
        "data": "data_io",
        "wal": "wal_io",
        "data_device": "device_io",
        "wal_device": "wal_device_io",
        "busy_share": "device_busy_share",
        "late_share": "device_late_share",
        "probe": "raw",
    },
    ServerFigures: {"state": "server_state"},
    WaitFigures: {"share": "wait_share", "top": "top_waits"},
    StepValidity: {},
    Bottleneck: {"is_device": "device_is_bottleneck"},
}
"""The groups of a step's figures, which stand beside the step's own. A figure whose name says too little without its
group has a longer key."""


def dumped(found: Any) -> str:
    """Return JSON of what this module made, as every strict reader takes it."""
    return json.dumps(found, allow_nan=False, default=str)


def in_json(value: Any) -> Any:
    """Return a value of the analysis as dicts, lists, texts and numbers; None for a number that is none, as JSON has no
    NaN. Arrays are left out."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if isinstance(value, DeviceLabel):
        return labelled(value)
    if isinstance(value, Finding):
        facts = in_json(value.facts)
        return {"kind": value.kind, "severity": value.severity, "facts": facts, "sentence": sentence(value)}
    if isinstance(value, Gate):
        words: dict[str, Any] = {"name": value.name, "asks": gates.asks(value), "figure": gates.figure(value)}
        words |= {"allowed": gates.allowed(value), "sentence": sentence(value.failure) if value.failure else None}
        return words | _of_fields(value)
    if is_dataclass(value) and not isinstance(value, type):
        return _of_fields(value)
    if isinstance(value, Mapping):
        return {key: in_json(one) for key, one in value.items() if not isinstance(one, np.ndarray)}
    if isinstance(value, list | tuple | set | frozenset):
        return [in_json(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _of_fields(value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    keys = GROUPS.get(type(value), {})
    for name in (one.name for one in fields(value)):
        said = getattr(value, name)
        found |= _of_fields(said) if type(said) in GROUPS else in_json({keys.get(name, name): said})
    return found

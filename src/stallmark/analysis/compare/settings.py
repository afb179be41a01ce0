"""Tell what two runs were made with: what differs by intent, and what must not differ if they are to be compared.

By intent differs what a variant declares (its buffer pool, its devices), and where the data lie: storage is what is
compared. Everything else that decides a figure must be the same.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from stallmark.analysis.finding import Finding, Kind, info, invalid
from stallmark.record.devices import array_in_words, data_device_name, device_of
from stallmark.stats.thresholds import POOL_REACHED

PLACEMENT = ("file ", "volume ", "tablespace ")
"""Settings with these prefixes say where data lie and how large the files are."""

MOMENTARY = ("server started", "database log reuse wait")
"""Settings that describe the moment they were read, not the configuration."""

WITH_THE_POOL = ("shared_buffers", "wal_buffers", "max server memory")
"""Settings by which the buffer pool is capped, and what PostgreSQL derives from it."""


class IntentKind(Kind):
    """Properties that may tell the sides of a comparison from one another."""

    POOL = "made_with_buffer_pool"
    DATA_DEVICE = "made_with_data_device"
    ARRAY = "made_with_array"
    LOG_DEVICE = "made_with_log_device"


class DifferenceKind(Kind):
    """Differences between runs that must be alike. Facts: `a` and `b`, None where a record does not say."""

    WORKLOAD = "other_workload"
    WORKLOAD_VERSION = "other_workload_version"
    SCALE = "other_scale"
    SEED = "other_seed"
    MIX = "other_mix"
    LOCALITY = "other_locality"
    SERVER = "other_server"
    SERVER_VERSION = "other_server_version"
    DESIGN = "other_physical_design"
    LOAD_MACHINES = "other_load_machines"
    CACHE_START = "other_cache_start"
    RESET = "other_reset"
    OBSERVATION = "other_observation"
    CPU = "other_cpu"
    CORES = "other_cores"
    MEMORY = "other_memory"
    ARRIVALS = "other_arrivals"
    RATE = "other_rate"
    THINK_TIME = "other_think_time"
    MEASURED = "other_measured_time"
    SETTING = "other_setting"
    POOL = "other_buffer_pool"


def by_intent(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what may tell this run's variant from others: its buffer pool, its array, the devices of data and log."""
    if reached := (manifest.get("memory") or {}).get("reached_bytes"):
        yield info(IntentKind.POOL, reached_bytes=reached)
    if device_of(manifest, "data"):
        yield info(IntentKind.DATA_DEVICE, device=data_device_name(manifest))
    for one in array_in_words(manifest):
        yield info(IntentKind.ARRAY, described=one)
    if (log := device_of(manifest, "wal")) and log != device_of(manifest, "data"):
        yield info(
            IntentKind.LOG_DEVICE,
            device=" ".join(str(log[part]) for part in ("name", "model") if log.get(part)) or None,
            emulated={part: log.get(part) for part in ("spindles", "rpm", "write_ms")} if "spindles" in log else None,
        )


def one_pool(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Tell whether the two were to have the same buffer pool: declared alike, or not at all."""
    return bool(_declared_pool(a) == _declared_pool(b))


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Finding]:
    """Yield what differs though neither variant declares it, the most important first."""
    for kind, *path in _SAME:
        left, right = _get(a, *path), _get(b, *path)
        if kind == DifferenceKind.LOAD_MACHINES:
            left, right = len(left or [0]), len(right or [0])  # how many, not which
        # What an older record does not say is not held against it.
        if left != right and left is not None and right is not None:
            yield invalid(kind, a=left, b=right)
    yield from _steps(a.get("steps") or [], b.get("steps") or [])
    pool = one_pool(a, b)
    yield from _settings(_get(a, "server", "settings") or {}, _get(b, "server", "settings") or {}, pool)
    left, right = _get(a, "memory", "reached_bytes"), _get(b, "memory", "reached_bytes")
    if pool and left and right and abs(right / left - 1) > POOL_REACHED:
        yield invalid(DifferenceKind.POOL, a=left, b=right)


_SAME = (
    (DifferenceKind.WORKLOAD, "workload", "name"),
    (DifferenceKind.WORKLOAD_VERSION, "workload", "version"),
    (DifferenceKind.SCALE, "workload", "scale"),
    (DifferenceKind.SEED, "workload", "seed"),
    (DifferenceKind.MIX, "scenario", "workload", "mix"),
    (DifferenceKind.LOCALITY, "scenario", "workload", "locality"),
    (DifferenceKind.SERVER, "server", "product"),
    (DifferenceKind.SERVER_VERSION, "server", "version"),
    (DifferenceKind.DESIGN, "scenario", "database"),
    (DifferenceKind.LOAD_MACHINES, "load_machines"),
    (DifferenceKind.CACHE_START, "cache_start"),
    (DifferenceKind.RESET, "reset"),
    (DifferenceKind.OBSERVATION, "scenario", "observe"),
    (DifferenceKind.CPU, "machine", "cpu"),
    (DifferenceKind.CORES, "machine", "cores"),
    (DifferenceKind.MEMORY, "machine", "memory_bytes"),
)


def _steps(a: list[Mapping[str, Any]], b: list[Mapping[str, Any]]) -> Iterator[Finding]:
    """Yield how arrivals and measured time of the same step differ; which steps there are is judged by who pairs
    them."""
    for left in a:
        for right in b:
            if (left.get("name"), left.get("users")) != (right.get("name"), right.get("users")):
                continue
            for kind, key in (
                (DifferenceKind.ARRIVALS, "arrivals"),
                (DifferenceKind.RATE, "rate"),
                (DifferenceKind.THINK_TIME, "think_ms"),
            ):
                if left.get(key) != right.get(key):
                    yield invalid(kind, a=left.get(key), b=right.get(key))
            lengths = _measured_s(left), _measured_s(right)
            if None not in lengths and lengths[0] != lengths[1]:
                yield invalid(DifferenceKind.MEASURED, a=lengths[0], b=lengths[1])


def _measured_s(step: Mapping[str, Any]) -> float | None:
    """Return the planned time to the millisecond: a run that waited for a steady state is measured later, as long."""
    begin, end = step.get("measure_s"), step.get("end_s")
    return None if begin is None or end is None else round(end - begin, 3)


def _settings(a: Mapping[str, str], b: Mapping[str, str], pool: bool) -> Iterator[Finding]:
    for name in sorted({*a, *b}):
        if name.startswith((*PLACEMENT, *MOMENTARY, "not readable")):
            continue
        if not pool and name.startswith(WITH_THE_POOL):
            continue
        if a.get(name) != b.get(name):
            yield invalid(DifferenceKind.SETTING, name=name, a=a.get(name), b=b.get(name))


def _declared_pool(manifest: Mapping[str, Any]) -> Any:
    return _get(manifest, "variant", "buffer_pool") or _get(manifest, "scenario", "buffer_pool")


def _get(manifest: Mapping[str, Any], *path: str) -> Any:
    value: Any = manifest
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value

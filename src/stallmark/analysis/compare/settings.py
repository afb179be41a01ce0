"""What two runs were made with: what differs by intent, and what must not differ if their figures are to be compared.

By intent differs what a variant declares (its buffer pool, its devices), and where the data lie: storage is what is
compared. Everything else that decides a figure must be the same.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from stallmark.format import number, size
from stallmark.record.devices import array_in_words, data_device_name, device_of
from stallmark.stats.thresholds import POOL_REACHED

PLACEMENT = ("file ", "volume ", "tablespace ")
"""Settings that begin so say where data lie and how large the files are."""

MOMENTARY = ("server started", "database log reuse wait")
"""Settings that say how the server stood when it was asked, and nothing of its configuration."""

WITH_THE_POOL = ("shared_buffers", "wal_buffers", "max server memory")
"""Settings by which the buffer pool is capped, and what PostgreSQL derives from it."""

Difference = tuple[str, Any, Any]  # what, of A, of B; None where it is not said


def by_intent(manifest: Mapping[str, Any]) -> list[str]:
    """What may tell this run's variant from others, in words: its buffer pool, its array, the devices of data
    and log."""
    reached = (manifest.get("memory") or {}).get("reached_bytes")
    said = [f"buffer pool {size(reached)}"] if reached else []
    if device_of(manifest, "data"):
        said.append(f"data on {data_device_name(manifest)}")
    said += [f"array: {one}" for one in array_in_words(manifest)]
    if (log := device_of(manifest, "wal")) and log != device_of(manifest, "data"):
        said.append(f"log on {_device(log)}")
    return said


def one_pool(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    """Whether the two were to have the same buffer pool: declared alike, or not at all."""
    return bool(_declared_pool(a) == _declared_pool(b))


def differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[Difference]:
    """What differs though neither variant declares it, in the order of importance."""
    return list(_differences(a, b))


def in_words(difference: Difference) -> str:
    what, left, right = difference
    return f"{what} {_said(left)} against {_said(right)}"


def _differences(a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Difference]:
    for what, *path in _SAME:
        left, right = _get(a, *path), _get(b, *path)
        if what == "load machines":
            left, right = len(left or [0]), len(right or [0])  # how many, not which
        # What an older record does not say, nobody can hold against it.
        if left != right and left is not None and right is not None:
            yield what, left, right
    yield from _steps(a.get("steps") or [], b.get("steps") or [])
    pool = one_pool(a, b)
    yield from _settings(_get(a, "server", "settings") or {}, _get(b, "server", "settings") or {}, pool)
    left, right = _get(a, "memory", "reached_bytes"), _get(b, "memory", "reached_bytes")
    if pool and left and right and abs(right / left - 1) > POOL_REACHED:
        yield "buffer pool", size(left), size(right)


_SAME = (
    ("workload", "workload", "name"),
    ("version of the workload", "workload", "version"),
    ("scale", "workload", "scale"),
    ("seed", "workload", "seed"),
    ("mix", "scenario", "workload", "mix"),
    ("locality", "scenario", "workload", "locality"),
    ("server", "server", "product"),
    ("version of the server", "server", "version"),
    ("physical design", "scenario", "database"),
    ("load machines", "load_machines"),
    ("cache at the start", "cache_start"),
    ("reset", "reset"),
    ("observation", "scenario", "observe"),
    ("CPU of the driver’s machine", "machine", "cpu"),
    ("cores of the driver’s machine", "machine", "cores"),
    ("memory of the driver’s machine", "machine", "memory_bytes"),
)


def _steps(a: list[Mapping[str, Any]], b: list[Mapping[str, Any]]) -> Iterator[Difference]:
    """How users arrive, and how long they are measured; which steps there are is for who pairs them to see."""
    for left in a:
        for right in b:
            if (left.get("name"), left.get("users")) != (right.get("name"), right.get("users")):
                continue
            for what, key in (("arrivals", "arrivals"), ("rate of arrivals", "rate"), ("think time, ms", "think_ms")):
                if left.get(key) != right.get(key):
                    yield what, left.get(key), right.get(key)
            lengths = _measured_s(left), _measured_s(right)
            if None not in lengths and lengths[0] != lengths[1]:
                yield ("seconds measured", *lengths)


def _measured_s(step: Mapping[str, Any]) -> float | None:
    """As planned, to the millisecond: a run that waited for a steady state is measured later, and for as long."""
    begin, end = step.get("measure_s"), step.get("end_s")
    return None if begin is None or end is None else round(end - begin, 3)


def _settings(a: Mapping[str, str], b: Mapping[str, str], pool: bool) -> Iterator[Difference]:
    for name in sorted({*a, *b}):
        if name.startswith((*PLACEMENT, *MOMENTARY, "not readable")):
            continue
        if not pool and name.startswith(WITH_THE_POOL):
            continue
        if a.get(name) != b.get(name):
            yield f"setting {name}", a.get(name), b.get(name)


def _declared_pool(manifest: Mapping[str, Any]) -> Any:
    return _get(manifest, "variant", "buffer_pool") or _get(manifest, "scenario", "buffer_pool")


def _device(described: Mapping[str, Any]) -> str:
    if "spindles" in described:
        rpm = described.get("rpm")
        time = f"{rpm:,.0f} rpm" if rpm else f"{number(described.get('write_ms') or 0)} ms"
        return f"{described['spindles']} emulated spindles, {time}"
    return " ".join(str(described[part]) for part in ("name", "model") if described.get(part)) or "unknown"


def _said(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {inner}" for key, inner in value.items()) or "none"
    if isinstance(value, list):
        return ", ".join(map(str, value)) or "none"
    return f"{value}"


def _get(manifest: Mapping[str, Any], *path: str) -> Any:
    value: Any = manifest
    for name in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(name)
    return value

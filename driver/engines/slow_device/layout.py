"""The state file's layout: the mirror image of `struct state` in slow_device.c."""

from __future__ import annotations

from ctypes import Structure, c_char, c_uint64

MAGIC = int.from_bytes(b"STALLSD1", "little")
MAX_DEVICES = 8
MAX_PLACES = 16
MAX_SPINDLES = 64
PATH_MAX = 4096
_DIRTY_SLOTS = 1024


class Model(Structure):
    _fields_ = (
        ("spindles", c_uint64),
        ("read_ns", c_uint64),
        ("write_ns", c_uint64),
        ("sync_ns", c_uint64),
        ("ps_per_byte", c_uint64),
    )


class Tally(Structure):
    _fields_ = (("count", c_uint64), ("bytes", c_uint64), ("ns", c_uint64))


class _Spindle(Structure):
    _fields_ = (("next_free", c_uint64), ("next_position", c_uint64))


class Device(Structure):
    _fields_ = (
        ("model", Model),
        ("reads", Tally),
        ("writes", Tally),
        ("syncs", Tally),
        ("busy_ns", c_uint64),
        ("late", c_uint64),
        ("_spindle", _Spindle * MAX_SPINDLES),
        ("_dirty", c_uint64 * _DIRTY_SLOTS),
    )


class Place(Structure):
    _fields_ = (("device", c_uint64), ("path", c_char * PATH_MAX))


class State(Structure):
    _fields_ = (
        ("magic", c_uint64),
        ("size", c_uint64),
        ("places", c_uint64),
        ("place", Place * MAX_PLACES),
        ("device", Device * MAX_DEVICES),
    )

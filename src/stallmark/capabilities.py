"""The capabilities: optional parts beside the core, each in a folder of its name.

The core imports none of them. It asks here for the parts that they add, and a part is imported when it is asked for. A
capability whose folder is removed adds nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

NAMES = ("attach", "by_hand", "lab", "live", "machines", "own_sql", "probe", "profile", "sizing")

Place = str
"""The place of a part: "module:name", or a module alone."""


@dataclass(frozen=True)
class CommandEntry:
    """A command in the help of all commands. `help` is the first sentence of its own help."""

    group: str
    name: str
    help: str
    module: str


@dataclass(frozen=True)
class Capability:
    """The parts of a capability."""

    name: str
    commands: tuple[CommandEntry, ...] = ()
    options: Mapping[str, Place] = field(default_factory=dict)
    """The click command with additional options for a command of the core, by its name; the core's command gets its
    result."""
    master: Place | None = None
    """The class of the conductor's Locust runner that commands load machines."""
    page: Place | None = None
    """The class of the page on which somebody changes the load of a run by hand, in the conductor."""
    measurements: Place | None = None
    """A function that summarises the attached measurements from a run's record, transactions per second and
    intervals."""
    section: Place | None = None
    """A function that returns the section of an experiment's report on these measurements."""
    scenario: Place | None = None
    """The model of its kind of scenarios, with a class method `is_meant` that returns True for the keys of such a
    file."""
    estimate: Place | None = None
    """A function that estimates the experiment of such a scenario; None for any other."""
    report: Place | None = None
    """The kind (report/kinds.py) of its records, as `stallmark report` shows them. A record is a folder with
    `<name>.json`, unless the capability has runs."""
    manifest: Place | None = None
    """The model of the manifest of its runs, whose `kind` is its name."""
    tables: Place | None = None
    """The tables of its runs, by name (record/schema.py: AddedTable)."""
    progress: Place | None = None
    """A function that returns the lines of `stallmark status` on a folder with `<name>.json` while it is made."""
    wording: tuple[Place, ...] = ()
    """The modules with the sentences of its findings, as those of report/text/."""
    definition: Place | None = None
    """A function that reads a user's workload, from a folder or as it is written out, into a definition."""
    schema: Place | None = None
    """A function that returns the JSON schema of a user's workload."""
    workload: Place | None = None
    """A function that makes a workload of such a definition."""
    examine: Place | None = None
    """A function that yields the lines of `stallmark doctor` on this machine."""


@cache
def installed() -> tuple[Capability, ...]:
    """Return the capabilities that are there."""
    modules = map(_module, NAMES)
    # A removed folder that byte code keeps alive is a package, too, and has none.
    return tuple(module.CAPABILITY for module in modules if hasattr(module, "CAPABILITY"))


def _module(name: str) -> Any:
    try:
        return import_module(f"stallmark.{name}")
    except ModuleNotFoundError as error:
        # A module that a capability itself lacks is a fault, and must not pass for a capability that was removed.
        if error.name != f"stallmark.{name}":
            raise
        return None


def missing(names: Iterable[str]) -> list[str]:
    """Return those of the named capabilities that are not there."""
    return sorted(set(names) - {capability.name for capability in installed()})


def parts(kind: str) -> list[Any]:
    """Return the parts of a kind, a field of Capability, of all that have one."""
    return [load(place) for capability in installed() if (place := getattr(capability, kind))]


def part(name: str, kind: str) -> Any:
    """Return the part of a kind of the named capability, or None if it has none or is not there."""
    places = (getattr(capability, kind) for capability in installed() if capability.name == name)
    return load(place) if (place := next(places, None)) else None


def wordings() -> list[Any]:
    """Return the modules with the sentences of all capabilities."""
    return [load(place) for capability in installed() for place in capability.wording]


def folders() -> list[Path]:
    """Return the folders of the capabilities that are there."""
    return [Path(__file__).parent / capability.name for capability in installed()]


def added_options(command: str) -> list[Any]:
    """Return the click commands whose options are added to a command of the core."""
    return [load(capability.options[command]) for capability in installed() if command in capability.options]


def load(place: Place) -> Any:
    """Import a part and return it."""
    module, _, name = place.partition(":")
    return getattr(import_module(module), name) if name else import_module(module)

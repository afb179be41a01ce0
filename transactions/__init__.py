"""The workloads: one folder for each, with its transactions and their SQL for each engine."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from stallmark import capabilities
from stallmark.engines.base import Engine
from stallmark.errors import CallFailed, StallmarkError
from stallmark.schema import APART, TOGETHER, are_apart, joined, parts_of, version_of
from stallmark.transactions.workload import Opening, Transaction, Workload, WorkloadContext

if TYPE_CHECKING:
    from sqlalchemy import MetaData


# Several workloads on one server: in one database, each in its own schema ("bank+mail"), or in one each ("bank,mail").
#
# They share no table. What they compete for is the server: its buffer pool, its cores, its devices.


@dataclass(frozen=True)
class WorkloadsTogether(Workload):
    """The data of several workloads. Its users, their transactions and the conditions are those of its `parts`."""

    parts_together: tuple[Workload, ...] = ()

    @property
    def parts(self) -> tuple[Workload, ...]:
        return self.parts_together

    @cached_property
    def metadata(self) -> "MetaData":
        from stallmark.schema.ddl import combined_metadata

        return combined_metadata([part.metadata for part in self.parts_together])

    @property
    def data_version(self) -> int:
        return version_of([part.data_version for part in self.parts_together])

    @property
    def is_given(self) -> bool:
        return all(part.is_given for part in self.parts_together)

    @property
    def setup(self) -> str:
        return "\nGO\n".join(filter(None, (part.setup for part in self.parts_together)))

    def procedures(self, dialect: str) -> str:
        return "\nGO\n".join(filter(None, (part.procedures(dialect) for part in self.parts_together)))


def combine(parts: Sequence[Workload], *, apart: bool = False) -> WorkloadsTogether:
    """Return the workload that is these together, or `apart` in a database each. Its version changes with that of
    each."""
    version = version_of([part.version for part in parts])
    name = joined([part.name for part in parts], apart=apart)
    return WorkloadsTogether(name, version, schema="", tables="", package="", parts_together=tuple(parts))


WORKLOADS = tuple(sorted(module.name for module in iter_modules(__path__) if module.ispkg))


_defined: dict[str, Workload] = {}


def define(definition: Mapping[str, Any]) -> Workload:
    """Make a user's workload known in this process, by its name, and return it."""
    if not (makers := capabilities.parts("workload")):
        raise StallmarkError("This Stallmark lacks the capability `own_sql`, which drives SQL of your own: install it.")
    made: Workload = makers[0](definition)
    # The same definition again must not make other classes: samples refer to them.
    if made.name not in _defined or _defined[made.name].definition != made.definition:
        _defined[made.name] = made
    return _defined[made.name]


def find_workload(name: str) -> Workload:
    """Return a workload by its name: one of ours, a user's that was defined, or that of a module by its dotted name (a
    benchmark has one).

    Names joined by "+", in the order of the alphabet, are several in one database; joined by ",", in one each.
    """
    if name in _defined:
        return _defined[name]
    # A user's may be defined anew.
    return _find_ours(name) if _defined.keys().isdisjoint(parts_of(name)) else _join(name)


@cache
def _find_ours(name: str) -> Workload:
    if TOGETHER in name or APART in name:
        return _join(name)
    return import_module(name if "." in name else f"stallmark.transactions.{name}").WORKLOAD


def _join(name: str) -> Workload:
    return combine([find_workload(part) for part in parts_of(name)], apart=are_apart(name))


def known_name(name: str) -> str:
    """Return the name of a workload, or of several joined by "+" or ",", as `find_workload` takes it.

    Raises StallmarkError for an unknown name, for a name given twice, and for both signs in one name.
    """
    parts = parts_of(name)
    if TOGETHER in name and APART in name:
        raise StallmarkError(
            f"{name!r} mixes + and ,: write bank+mail for two in one database, bank,mail for a database each."
        )
    if unknown := [part for part in parts if part not in WORKLOADS and part not in _defined]:
        raise StallmarkError(
            f"{unknown[0]!r} is not a workload: choose one of {', '.join(WORKLOADS)}, or bank+mail for two."
        )
    if twice := [part for part in parts if parts.count(part) > 1]:
        raise StallmarkError(f"{name!r} names {twice[0]} twice: name it once.")
    return joined(parts, apart=are_apart(name))


OPENED_WITHIN_S = 600.0  # many orders may be left over


def open_workload(engine: Engine, workload: Workload, scale: Mapping[str, Any], seed: int) -> Opening | None:
    """Execute the opening transaction of the workload, once before its load, and return it; None without one.

    Raises StallmarkError when it fails.
    """
    if workload.users.opening is None:
        return None
    shared = workload.users.share(WorkloadContext(scale, seed, engine.query, _refuse_to_post))
    opening = workload.users.opening(shared)
    session = engine.session(OPENED_WITHIN_S)
    try:
        workload.prepare(session, [workload.users.opening])
        opening.execute(session, opening.inputs(random.Random(seed)))
    except CallFailed as error:
        raise StallmarkError(f"{opening.name}, which a run of {workload.name} begins with, failed: {error}.") from None
    finally:
        session.close()
    return opening


def _refuse_to_post(kind: type[Transaction], inputs: tuple, after_s: float) -> None:
    raise AssertionError(f"{kind.name} would follow from an opening transaction: no session would execute it")

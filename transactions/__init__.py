"""The workloads: one folder for each, one file per transaction, with its SQL for each engine."""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from stallmark.errors import StallmarkError
from stallmark.schema.several import APART, TOGETHER, are_apart, joined, parts_of
from stallmark.transactions.together import together
from stallmark.transactions.workload import Workload

WORKLOADS = tuple(sorted(module.name for module in iter_modules(__path__) if module.ispkg))


@cache
def find_workload(name: str) -> Workload:
    """Return one of our workloads by its name, or that of any module by its dotted name (a benchmark has one).

    Names joined by "+", in the order of the alphabet, are several in one database; joined by ",", in one each.
    """
    if TOGETHER in name or APART in name:
        return together([find_workload(part) for part in parts_of(name)], apart=are_apart(name))
    return import_module(name if "." in name else f"stallmark.transactions.{name}").WORKLOAD


def known_name(name: str) -> str:
    """Return the name of a workload, or of several joined by "+" or ",", as `find_workload` takes it.

    Raises StallmarkError for one that there is not, for one that is named twice, and for both signs in one name.
    """
    parts = parts_of(name)
    if TOGETHER in name and APART in name:
        raise StallmarkError(
            f"{name!r} says + and ,: write bank+mail for two in one database, bank,mail for a database each."
        )
    if unknown := [part for part in parts if part not in WORKLOADS]:
        raise StallmarkError(f"{unknown[0]!r} is no workload: there are {', '.join(WORKLOADS)}, and bank+mail for two.")
    if twice := [part for part in parts if parts.count(part) > 1]:
        raise StallmarkError(f"{name!r} names {twice[0]} twice: name it once.")
    return joined(parts, apart=are_apart(name))

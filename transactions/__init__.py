"""The workloads: one folder for each, one file per transaction, with its SQL for each engine."""

from importlib import import_module

from stallmark.transactions.workload import Workload

WORKLOADS = ("bank", "brokerage", "mail", "warehouse", "htap")


def find_workload(name: str) -> Workload:
    """Return one of our workloads by its name, or that of any module by its dotted name (a benchmark has one)."""
    return import_module(name if "." in name else f"stallmark.transactions.{name}").WORKLOAD

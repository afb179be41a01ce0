"""What users do: one folder per workload, one file per transaction, its SQL beside it for each engine."""

from importlib import import_module

from stallmark.transactions.workload import Workload

WORKLOADS = ("bank", "brokerage", "warehouse", "htap")


def find_workload(name: str) -> Workload:
    """One of ours by its name, or that of any module by the module's (a benchmark has one)."""
    return import_module(name if "." in name else f"stallmark.transactions.{name}").WORKLOAD

"""What users do: one folder per workload, one file per transaction, its SQL beside it for each engine."""

from importlib import import_module

from stallmark.transactions.workload import Workload

WORKLOADS = ("bank", "brokerage")


def find_workload(name: str) -> Workload:
    return import_module(f"stallmark.transactions.{name}").WORKLOAD

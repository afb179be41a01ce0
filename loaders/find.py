"""The loader of a workload, or of several that are in one database."""

from importlib import import_module

from stallmark.loaders.plan import Loader
from stallmark.loaders.together import LoadersTogether


def loader_for(workload: str) -> Loader:
    """Return the loader of a workload, or of several whose names are joined by "+"."""
    if "+" in workload:
        return LoadersTogether({part: loader_for(part) for part in workload.split("+")})
    return import_module(f"stallmark.loaders.{workload}").LOADER

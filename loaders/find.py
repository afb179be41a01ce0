"""The loader of a workload, or of several on one server."""

from importlib import import_module

from stallmark.loaders.plan import Loader
from stallmark.loaders.together import LoadersTogether
from stallmark.schema.several import parts_of


def loader_for(workload: str) -> Loader:
    """Return the loader of a workload, or of several whose names are joined by "+" or ","."""
    if len(parts := parts_of(workload)) > 1:
        return LoadersTogether({part: loader_for(part) for part in parts})
    return import_module(f"stallmark.loaders.{workload}").LOADER

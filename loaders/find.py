"""The loader of a workload, or of several on one server."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any

from stallmark.errors import StallmarkError
from stallmark.loaders.plan import Batch, Loader, Piece, Scale, Supply, TableGroup
from stallmark.schema.several import parts_of


# The rows of several workloads, each as its own loader makes them.
class LoadersTogether(Loader):
    """Groups of the ledger are named after the loader that they are of: "warehouse/orders". A scale names the measures
    of all; what several of them know, as `compressibility`, is one for all."""

    def __init__(self, parts: Mapping[str, Loader]):
        self._parts = parts
        self.example = ",".join(part.example for part in parts.values())  # type: ignore[misc]
        self.measures = tuple(dict.fromkeys(name for part in parts.values() for name in part.measures))  # type: ignore[misc]
        self.options = {name: value for part in parts.values() for name, value in part.options.items()}  # type: ignore[misc]
        self.seeded = any(part.seeded for part in parts.values())  # type: ignore[misc]

    def scale(self, given: Scale) -> dict[str, Any]:
        if unknown := [name for name in given if name not in self.measures]:
            raise StallmarkError(
                f"{'+'.join(self._parts)} has no measure {unknown[0]!r}: there are {', '.join(self.measures)}."
            )
        scales = [part.scale(part.own(given)) for part in self._parts.values()]
        return {name: value for scale in scales for name, value in scale.items()}

    def ready(self) -> None:
        for part in self._parts.values():
            part.ready()

    def groups(self, scale: Scale) -> list[TableGroup]:
        return [
            TableGroup(f"{name}/{group.name}", group.batches, group.rows, group.article_bytes)
            for name, part in self._parts.items()
            for group in part.groups(part.own(scale))
        ]

    def rows_of(self, scale: Scale, batch: Batch) -> Mapping[str, str]:
        part, own = self._own(batch)
        return part.rows_of(part.own(scale), own)

    def batch(self, seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        part, own = self._own(batch)
        return part.batch(seed, part.own(scale), own)

    @contextmanager
    def supply(self, scale: Scale, batches: Sequence[Batch], workers: int) -> Iterator[Supply]:
        with ExitStack() as stack:
            supplies = {
                name: stack.enter_context(part.supply(part.own(scale), self._of(name, batches), workers))
                for name, part in self._parts.items()
            }
            yield Supply(
                (
                    Batch(f"{name}/{batch.group}", batch.number)
                    for name, supply in supplies.items()
                    for batch in supply.batches
                ),
                {where: folder for supply in supplies.values() for where, folder in supply.folders.items()},
            )

    def supplied(self, folders: Mapping[str, str], seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        part, own = self._own(batch)
        return part.supplied(folders, seed, part.own(scale), own)

    def _of(self, name: str, batches: Sequence[Batch]) -> list[Batch]:
        return [self._own(batch)[1] for batch in batches if batch.group.startswith(f"{name}/")]

    def _own(self, batch: Batch) -> tuple[Loader, Batch]:
        """Return the loader that a batch is of, and how that one calls it."""
        part, _, group = batch.group.partition("/")
        return self._parts[part], Batch(group, batch.number)


def loader_for(workload: str) -> Loader:
    """Return the loader of a workload, or of several whose names are joined by "+" or ","."""
    if len(parts := parts_of(workload)) > 1:
        return LoadersTogether({part: loader_for(part) for part in parts})
    return import_module(f"stallmark.loaders.{workload}").LOADER

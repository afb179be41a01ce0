"""The brokerage's rows and the warehouse's in one database, each as its own loader makes them."""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from stallmark.loaders import brokerage, warehouse
from stallmark.loaders.plan import Batch, Loader, Piece, Scale, TableGroup

_PARTS: Mapping[str, Loader] = {"brokerage": brokerage.LOADER, "warehouse": warehouse.LOADER}


class HtapLoader(Loader):
    """Groups of the ledger are named after the loader that they are of: "warehouse/all"."""

    example = f"{brokerage.LOADER.example},{warehouse.LOADER.example}"
    options: ClassVar = {name: value for part in _PARTS.values() for name, value in part.options.items()}

    def scale(self, given: Scale) -> dict[str, Any]:
        of_warehouse = {name: value for name, value in given.items() if name == "factor"}
        rest = {name: value for name, value in given.items() if name != "factor"}
        return brokerage.LOADER.scale(rest) | warehouse.LOADER.scale(of_warehouse)

    def ready(self) -> None:
        for part in _PARTS.values():
            part.ready()

    def groups(self, scale: Scale) -> list[TableGroup]:
        return [
            TableGroup(f"{name}/{group.name}", group.batches, group.rows)
            for name, part in _PARTS.items()
            for group in part.groups(scale)
        ]

    def rows_of(self, scale: Scale, batch: Batch) -> Mapping[str, str]:
        part, own = _own(batch)
        return part.rows_of(scale, own)

    def batch(self, seed: int, scale: Scale, batch: Batch) -> Iterator[Piece]:
        part, own = _own(batch)
        return part.batch(seed, scale, own)


def _own(batch: Batch) -> tuple[Loader, Batch]:
    """Return the loader that a batch is of, and how that one calls it."""
    part, _, group = batch.group.partition("/")
    return _PARTS[part], Batch(group, batch.number)


LOADER = HtapLoader()

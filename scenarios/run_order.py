"""The order in which the runs of a scenario are made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

Order = Literal["alternating", "abba", "blocks"]

V = TypeVar("V")


@dataclass(frozen=True)
class PlannedRun(Generic[V]):
    """One run. Runs of one block share what changes slowly with time; `again`: of the first variant, at the end."""

    variant: V
    repeat: int
    block: int
    again: bool = False


def run_order(variants: Sequence[V], repeats: int, order: Order) -> list[PlannedRun[V]]:
    """Return the runs in order.

    `alternating`: A B C, A B C. `abba`: A B C, C B A, so that a steady drift affects all variants equally. `blocks`:
    all runs of A, of B, of C, and those of A again (A′), which shows if the rest can be compared at all. Blocks suit
    storage that takes hours to warm up, and would start again with every change of the variant.
    """
    if order == "blocks":
        return list(_blocks(variants, repeats))
    return [
        PlannedRun(variant, repeat, repeat)
        for repeat in range(1, repeats + 1)
        for variant in (reversed(variants) if order == "abba" and repeat % 2 == 0 else variants)
    ]


def _blocks(variants: Sequence[V], repeats: int) -> Iterator[PlannedRun[V]]:
    for block, variant in enumerate(variants, 1):
        yield from (PlannedRun(variant, repeat, block) for repeat in range(1, repeats + 1))
    if len(variants) > 1:
        for repeat in range(repeats + 1, 2 * repeats + 1):
            yield PlannedRun(variants[0], repeat, len(variants) + 1, again=True)

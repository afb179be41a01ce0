"""The runs of an experiment in their order. Those of a curve of memory are chosen as it goes, from what was seen.

The choice depends on the whole runs alone, so an experiment that was killed goes on as it would have. The record of a
run says why its size was chosen; and that no further one was needed, where there might have been one.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from stallmark.analysis.run import summarise_run
from stallmark.record.manifest import Manifest, write_manifest
from stallmark.record.manifest.course import ChosenSize
from stallmark.record.reader import Record
from stallmark.scenarios.model import AnyScenario, Variant
from stallmark.scenarios.variant import PlannedRun
from stallmark.stats.curve_search import Asked, Values, next_size


@dataclass(frozen=True)
class Turn:
    """A run that comes next, its `number` from 1, `of` how many at most; `chosen` where its size was just chosen."""

    number: int
    of: int
    planned: PlannedRun[Variant]
    chosen: ChosenSize | None = None


def order_of(scenario: AnyScenario, made: Sequence[Manifest]) -> list[PlannedRun[Variant]]:
    """Return the runs of an experiment, as far as those `made` tell of a curve; the most there may be until its sizes
    are all chosen."""
    if not scenario.curve:
        return scenario.run_order()
    chosen = _chosen(made)
    return scenario.run_order([one.bytes for one in chosen.values()], ended=any(one.last for one in chosen.values()))


def _chosen(made: Sequence[Manifest]) -> dict[int, ChosenSize]:
    """Return the sizes that runs were made with for the first time, by number, in order."""
    known = {one.sequence or 1: one.memory.chosen for one in made if one.memory.chosen}
    return dict(sorted(known.items()))


class Course:
    """The course of one experiment: iterate over it for the runs that it lacks, and `add` each that was made. `asked`
    is the curve of its scenario, in bytes; None where it has none."""

    def __init__(self, scenario: AnyScenario, asked: Asked | None, done: Mapping[int, Record]):
        self._scenario = scenario
        self._asked = asked
        self._done = set(done)
        self._records = dict(done)  # those added later only for a curve
        self._values: dict[int, Values] = {}

    def __iter__(self) -> Iterator[Turn]:
        number = 1
        while number <= len(order := self._order()):
            if number in self._done:
                number += 1
                continue
            planned, chosen = order[number - 1], None
            if self._asked and planned.variant.buffer_pool is None:  # its size is not chosen yet
                if (choice := next_size(self._asked, self._seen())) is None:
                    self._end()
                    continue
                planned = replace(planned, variant=self._scenario.with_size(choice.size))
                chosen = ChosenSize(
                    bytes=choice.size, why=choice.why.value, between_bytes=choice.between, error=choice.error
                )
            yield Turn(number, len(order), planned, chosen)
            if number not in self._done:
                return
            number += 1

    def add(self, number: int, folder: Path) -> None:
        """Add a run that is whole, by the folder of its record."""
        self._done.add(number)
        if self._asked:
            self._records[number] = Record(folder)

    def left(self) -> list[int]:
        """Return the numbers of the runs that are left, at most."""
        return [number for number in range(1, len(self._order()) + 1) if number not in self._done]

    @property
    def _made(self) -> list[Manifest]:
        return [record.manifest for record in self._records.values()]

    def _order(self) -> list[PlannedRun[Variant]]:
        return order_of(self._scenario, self._made)

    def _seen(self) -> dict[int, Values]:
        """Return what whole runs say of their sizes; each is read once."""
        chosen = _chosen(self._made)
        self._values |= {n: _values(self._records[n]) for n in chosen.keys() - self._values.keys()}
        return {one.bytes: self._values[number] for number, one in chosen.items()}

    def _end(self) -> None:
        """Note with the last size that no further one is needed."""
        number, last = list(_chosen(self._made).items())[-1]
        record = self._records[number]
        memory = record.manifest.memory.changed(chosen=last.changed(last=True))
        write_manifest(record.folder, record.manifest.changed(memory=memory))
        self._records[number] = Record(record.folder)


def _values(record: Record) -> Values:
    """Return what a run says of its size; nothing where its figures are not to be believed."""
    steps = summarise_run(record, "seen").steps
    if not steps or steps[0].validity.invalid:
        return Values(None, None)
    return Values(steps[0].storage.reads_per_transaction, steps[0].result_tps)

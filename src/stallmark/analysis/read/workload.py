"""The workload of a run: its transactions, what starts them, and which of them is the result."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stallmark.record.manifest import Manifest
from stallmark.record.manifest.course import Unheard
from stallmark.record.manifest.workload import Counted, Transaction


@dataclass(frozen=True)
class TransactionType:
    """A type of transaction. `source` is "users", "followers" or "timer". With `follows`, `each` of these come of one
    of that type."""

    name: str
    cards: int | float
    source: str
    limit_s: float | None
    follows: str | None = None
    each: float = 0.0


@dataclass(frozen=True)
class RecordedWorkload:
    """The workload as the manifest has it."""

    kinds: tuple[TransactionType, ...] = ()
    primary: str | None = None
    nominal_rate: float | None = None
    counted: Mapping[str, Counted] = field(default_factory=dict)
    unheard: Unheard = field(default_factory=Unheard)

    def of_users(self) -> list[TransactionType]:
        """Return the types that the deck holds."""
        return [kind for kind in self.kinds if kind.source == "users" and kind.cards]

    @property
    def attended(self) -> frozenset[str]:
        """Return the names of the transactions that no virtual user starts."""
        return frozenset(kind.name for kind in self.kinds if kind.source != "users")

    def deck_share(self, kind: TransactionType) -> float | None:
        cards = sum(one.cards for one in self.of_users())
        return kind.cards / cards if cards and kind.source == "users" else None

    def find(self, name: str) -> TransactionType:
        return next((kind for kind in self.kinds if kind.name == name), TransactionType(name, 0, "users", None))

    def in_order(self, names: Iterable[str]) -> list[str]:
        """Return names in the order of the manifest, unknown ones last."""
        known = [kind.name for kind in self.kinds]
        return sorted(names, key=lambda name: (known.index(name) if name in known else len(known), name))


def read_workload(manifest: Manifest) -> RecordedWorkload:
    declared = manifest.workload
    kinds = tuple(_kind(one) for one in declared.transactions)
    return RecordedWorkload(kinds, declared.primary, declared.nominal_rate, declared.counted, manifest.unheard)


def _kind(declared: Transaction) -> TransactionType:
    follows = declared.follows
    return TransactionType(
        declared.name,
        declared.cards,
        declared.source,
        declared.limit_s,
        follows.transaction if follows else None,
        follows.each if follows else 0.0,
    )

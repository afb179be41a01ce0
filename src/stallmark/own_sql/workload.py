"""The workload that a definition makes, in every process that drives or checks it."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from stallmark.engines.base import Engine, Session
from stallmark.own_sql.transaction import OwnTransaction, Shared, statement_facts, transaction_class
from stallmark.transactions.workload import (
    Background,
    Condition,
    StatementFacts,
    Transaction,
    UserLoad,
    Workload,
    WorkloadContext,
)

if TYPE_CHECKING:
    from sqlalchemy import MetaData

_VERSIONS = 10**6
_SESSIONS_PER_USER = 0.001  # one session per process at intervals, up to 1,000 users


@dataclass(frozen=True)
class OwnWorkload(Workload):
    """A user's workload. Its tables are the user's; nothing of it is built but by `setup`."""

    definition: Mapping[str, Any] = field(default_factory=dict)

    @property
    def data_version(self) -> int:
        return _number(self.setup)

    @property
    def setup(self) -> str:
        return str(self.definition["setup"])

    @property
    def metadata(self) -> "MetaData":  # type: ignore[override]
        from sqlalchemy import MetaData

        return MetaData()

    def procedures(self, dialect: str) -> str:
        return ""

    def prepare(self, session: Session, kinds: Iterable[type[Transaction]]) -> None:
        texts: dict[str, str] = {}
        reads_only = True
        for kind in kinds:
            assert issubclass(kind, OwnTransaction)
            texts |= kind.to_prepare(session.dialect)
            reads_only = reads_only and kind.reads_only
        # Without --shared all transactions only read by their words. A function may write all the same, for some
        # parameters only, and then the trial before the load does not meet it.
        if reads_only:
            session.refuse_writes()
        for name, sql in texts.items():
            session.prepare(name, sql)

    def statements(self, dialect: str) -> Sequence[StatementFacts]:
        return list(statement_facts(self.definition, dialect))

    def examine(self, engine: Engine, users: int) -> None:
        # Imported here because an executor, which imports this module, never examines.
        from stallmark.own_sql.examine import examine

        examine(engine, self, users)


def make_workload(definition: Mapping[str, Any]) -> OwnWorkload:
    """Return the workload of a definition, as `folder.read_definition` returns it."""
    kinds = {name: transaction_class(name, given, definition) for name, given in definition["transactions"].items()}
    by_key: dict[str, dict[type[Transaction], float]] = {
        key: {kinds[name]: given[key] for name, given in definition["transactions"].items() if given[key]}
        for key in ("every", "rate")
    }
    every, rates = by_key["every"], by_key["rate"]
    weights: dict[type[Transaction], int] = {
        kind: definition["transactions"][name]["weight"]
        for name, kind in kinds.items()
        if kind not in every and kind not in rates
    }
    primary = definition["primary"]

    def share(context: WorkloadContext) -> Shared:
        return Shared(definition, context)

    return OwnWorkload(
        name=definition["name"],
        version=version_of(definition),
        schema="",
        tables="",
        package=__package__ or "",
        conditions=tuple(Condition(name, _bare(text)) for name, text in definition["conditions"].items()),
        users=UserLoad(deck=weights, share=share, primary=kinds[primary] if primary else None),
        background=Background(
            timers=every,
            rates=rates,
            # A transaction at a rate has as many sessions as users have, so that the server limits it and not we.
            sessions_per_user=1.0 if rates else _SESSIONS_PER_USER if every else 0.0,
            executed_by="the transactions at a rate or at intervals",
        ),
        definition=definition,
    )


def version_of(definition: Mapping[str, Any]) -> int:
    """Return a number that changes with every word of a definition that decides what is executed."""
    return _number(json.dumps(definition, sort_keys=True, default=str))


def _bare(text: str) -> str:
    """Return a query without its semicolon, so that it can stand within another."""
    return text.rstrip().rstrip(";")


def _number(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest(), 16) % _VERSIONS

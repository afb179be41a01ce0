"""The DDL of a schema: of one workload or several, bare tables first and their keys afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import AddConstraint, Constraint, Index

# The DDL of a schema, split so that tables can be loaded bare and get their keys afterwards.


@dataclass(frozen=True)
class Ddl:
    """A copy of a schema in the order of deployment. The keys are not part of the tables any more."""

    tables: sa.MetaData
    keys: Sequence[Constraint | Index]
    foreign_keys: Sequence[sa.ForeignKeyConstraint]


def ddl_of(metadata: sa.MetaData) -> Ddl:
    copy = sa.MetaData(schema=metadata.schema, naming_convention=metadata.naming_convention)
    keys: list[Constraint | Index] = []
    foreign_keys: list[sa.ForeignKeyConstraint] = []
    for original in metadata.sorted_tables:
        table = original.to_metadata(copy)
        keys += sorted(table.indexes, key=lambda index: str(index.name))
        table.indexes.clear()
        for constraint in sorted(table.constraints, key=lambda c: str(c.name)):
            match constraint:
                case sa.ForeignKeyConstraint():
                    # Checked afterwards, when PostgreSQL needs no lock on the parent.
                    constraint.dialect_options["postgresql"]["not_valid"] = True
                    foreign_keys.append(constraint)
                case sa.PrimaryKeyConstraint() if len(constraint.columns):
                    keys.insert(0, constraint)
                case sa.UniqueConstraint():
                    keys.append(constraint)
                case _:
                    continue  # a check costs little inline, and a scan of the table afterwards
            AddConstraint(constraint)  # keeps it out of CREATE TABLE
    return Ddl(copy, keys, foreign_keys)


# The tables of several workloads in one database, each in its own schema.


def together(parts: Sequence[sa.MetaData]) -> sa.MetaData:
    """Return metadata without a schema of its own: each table keeps the one it has."""
    all_of_them = sa.MetaData(naming_convention=parts[0].naming_convention)
    for part in parts:
        for table in part.sorted_tables:
            table.to_metadata(all_of_them, schema=str(table.schema), referred_schema_fn=_its_own)
    return all_of_them


def _its_own(table: sa.Table, schema: str | None, *_: Any) -> str | None:
    """Return the schema of a foreign key: that of its table, because it names none."""
    return schema

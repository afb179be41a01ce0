"""Canonical checksums: equal for tables with the same rows, in whatever order, on whatever engine.

Each row becomes one text in a form that both engines can write (decimals with their declared digits, times with
milliseconds, `~` for null); the checksum is the sum over all rows of the first 56 bits of the texts' MD5.
"""

from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa

from stallmark.engines.base import Engine


def checksums(engine: Engine, metadata: sa.MetaData) -> dict[str, tuple[int, int]]:
    """By table: rows and sum."""

    def of(table: sa.Table) -> tuple[int, int]:
        with engine.cursor() as cursor:
            cursor.execute(statement(table, engine.dialect))
            rows, total = cursor.fetchone()
        return int(rows), int(total or 0)

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(metadata.tables, pool.map(of, metadata.tables.values()), strict=True))


def statement(table: sa.Table, dialect: str) -> str:
    if dialect == "mssql":
        parts = ", '|', ".join(f"COALESCE({_mssql(column)}, '~')" for column in table.columns)
        bits = f"CONVERT(bigint, 0x00 + SUBSTRING(HASHBYTES('MD5', CONCAT({parts}, '')), 1, 7))"
        return f"SELECT COUNT_BIG(*), SUM(CONVERT(decimal(38, 0), {bits})) FROM {table.fullname}"
    parts = " || '|' || ".join(f"COALESCE({_postgresql(column)}, '~')" for column in table.columns)
    return f"SELECT COUNT(*), SUM(('x' || left(md5({parts}), 14))::bit(56)::bigint::numeric) FROM {table.fullname}"


def _mssql(column: sa.Column) -> str:
    match column.type:
        case sa.DateTime():
            # Babelfish leaves out zeros at the end of the style's fraction.
            milliseconds = f"RIGHT(CONCAT('00', DATEPART(millisecond, {column.name})), 3)"
            return f"CONVERT(varchar(19), {column.name}, 121) + '.' + {milliseconds}"
        case sa.Date():
            return f"CONVERT(varchar(10), {column.name}, 23)"
        case sa.String():
            return f"RTRIM({column.name})"
        case _:
            return f"CONVERT(varchar(40), {column.name})"


def _postgresql(column: sa.Column) -> str:
    match column.type:
        case sa.DateTime():
            return f"to_char({column.name}, 'YYYY-MM-DD HH24:MI:SS.MS')"
        case sa.Date():
            return f"to_char({column.name}, 'YYYY-MM-DD')"
        case sa.Boolean():
            return f"{column.name}::int::text"
        case sa.String():
            return f"rtrim({column.name}::text)"
        case _:
            return f"{column.name}::text"

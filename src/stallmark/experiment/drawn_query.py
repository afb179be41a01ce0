"""A query of the warehouse with the parameters that a stream puts into it."""

from stallmark.driver.query_streams import Query
from stallmark.scenarios.model import WorkloadChoice
from stallmark.transactions.warehouse.parameters import parameters
from stallmark.transactions.warehouse.queries import text


def drawn_query(query: int, stream: int, choice: WorkloadChoice, dialect: str, dop: int | None = None) -> Query:
    """Return a query with its drawn parameters. On SQL Server `dop` stands in the text; on PostgreSQL the session
    sets it."""
    drawn = parameters(query, choice.seed, stream, choice.scale["factor"])
    in_text = dop if dialect == "mssql" else None
    return Query(f"Q{query}", text(query, dialect, drawn, dop=in_text), dop)

"""A shop of a user's in a real database, and the execution of SQL of a user's own."""

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from stallmark.own_sql.command import STARTER
from stallmark.own_sql.folder import read_definition
from stallmark.own_sql.transaction import OwnTransaction
from stallmark.transactions import define
from stallmark.transactions.workload import Outcome, Workload, WorkloadContext
from support.clusters import ClusterEngine

newest = pytest.mark.parametrize("cluster", [18], indirect=True, ids="pg{}".format)
"""A test with runs, which are alike on every version of PostgreSQL."""


REFUSES = """
CREATE TABLE login (id int, password text);
CREATE FUNCTION refuse(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN
    IF current_setting('application_name') <> 'stallmark-check' AND $1 LIKE 'hush%' THEN RAISE 'not %!', $1; END IF;
    RETURN $1; END $$
"""
"""A table of logins, and a function that quotes its argument in an error, but in the trial."""


@pytest.fixture
def empty(engine: ClusterEngine) -> Iterator[str]:
    """The URL of a database without tables, in which nothing is left afterwards."""
    engine.execute("DROP SCHEMA IF EXISTS public CASCADE; CREATE SCHEMA public")
    yield engine.cluster.url()
    engine.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")


@pytest.fixture
def shop(empty: str, engine: ClusterEngine) -> str:
    """The URL of a database with the shop in it. It takes a fifth of a second of a processor to build."""
    engine.execute((STARTER / "setup.sql").read_text())
    return empty


def workload_of(**transactions: Any) -> Workload:
    return define(read_definition({"name": "own", "transactions": transactions}))


def executed(
    engine: ClusterEngine,
    workload: Workload,
    times: int = 1,
    seed: int = 1,
    report: Callable[[Sequence[int]], None] = lambda samples: None,
) -> list[Outcome]:
    """Execute the one transaction of a workload; return how each execution ended."""
    context = WorkloadContext({}, seed, engine.query, lambda *_: None, report_statements=report)
    shared = workload.users.share(context)
    [kind] = workload.transactions
    assert issubclass(kind, OwnTransaction)
    transaction, rng = kind(shared), random.Random(seed)
    # Closed after an error, too: the traceback keeps a session alive, and later tests count the sessions of users.
    with closing(engine.session(30.0)) as session:
        workload.prepare(session, [kind])
        return [transaction.execute(session, transaction.inputs(rng)) for _ in range(times)]

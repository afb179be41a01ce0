"""Queries on SQL Server against a responder: rows are counted, the server's notes read, what is missing said."""

import pytest
from support.mssql_server import rows
from support.tds.answers import Error, Hold, Rows
from support.tds.datatypes import INT
from support.tds.tokens import Column

from stallmark.engines.abilities import Measures
from stallmark.engines.mssql.session import plan_hash
from stallmark.errors import CallFailed, ErrorClass

ROWS = Rows([Column("n", INT)], [(number,) for number in range(2500)])
SCHEMA = "http://schemas.microsoft.com/sqlserver/2004/07/showplan"


def showplan(scan: str = "Clustered Index Scan", rows: str = "") -> str:
    """As SQL Server 2019 writes one, without what nobody reads here."""
    return f"""<ShowPlanXML xmlns="{SCHEMA}" Version="1.539" Build="15.0.4000.1"><BatchSequence><Batch><Statements>
<StmtSimple StatementText="-- Q1" QueryPlanHash="0x01"><QueryPlan DegreeOfParallelism="2" CachedPlanSize="56">
<RelOp NodeId="0" PhysicalOp="Hash Match" LogicalOp="Aggregate" Parallel="1" EstimateRows="4"><Hash>
<RelOp NodeId="1" PhysicalOp="{scan}" LogicalOp="{scan}" Parallel="1" EstimateRows="6e+006">{rows}
<IndexScan><Object Schema="[warehouse]" Table="[lineitem]" Index="[lineitem_pk]" Alias="[l]" /></IndexScan>
</RelOp></Hash></RelOp></QueryPlan></StmtSimple></Statements></Batch></BatchSequence></ShowPlanXML>"""


ACTUAL = '<RunTimeInformation><RunTimeCountersPerThread Thread="0" ActualRows="9" /></RunTimeInformation>'


def test_the_shape_of_a_plan():
    one = plan_hash(showplan())
    assert plan_hash(showplan(rows=ACTUAL)) == one
    assert plan_hash(showplan("Index Seek")) != one
    assert plan_hash(showplan().replace("lineitem_pk", "lineitem_date")) != one


def test_what_is_no_plan_is_refused():
    with pytest.raises(ValueError, match="not a plan"):
        plan_hash("<ShowPlanXML")


STATS = ("last_rows", "last_logical_reads", "last_physical_reads", "last_worker_time", "last_dop", "last_grant_kb",
         "last_spills", "query_plan")  # fmt: skip


class Notes:
    """sys.dm_exec_query_stats and dm_exec_session_wait_stats, with columns as Microsoft documents them: worker time in
    µs, spills in pages, waits in ms since the session began."""

    def __init__(self, script):
        self.stats = [(2500, 1010, 900, 1_530_000, 2, 2048, 210, showplan())]
        self.waits = [[("ASYNC_NETWORK_IO", 5)], [("ASYNC_NETWORK_IO", 5), ("PAGEIOLATCH_SH", 812)]]
        script.sql("dm_exec_query_stats", lambda _: [rows(STATS, *self.stats)])
        script.sql("dm_exec_session_wait_stats", lambda _: [rows(("type", "ms"), *self._next())])

    def _next(self):
        return self.waits.pop(0) if len(self.waits) > 1 else self.waits[0]


@pytest.fixture
def asked(script):
    script.sql("^-- Q1", ROWS)
    script.sql("^-- Q3", Error(208, "Invalid object name 'warehouse.lineitem'.", severity=16))
    script.sql("^-- Q4", Hold())
    return script


def test_a_query_is_timed_without_a_profiler_and_its_notes_are_asked_for_afterwards(engine, server, asked):
    Notes(asked)
    session = engine.queries(30)
    session.set_dop(4)
    server.forget()
    answer = session.execute("-- Q1\nSELECT 1")
    assert answer.rows == 2500 and server.round_trips == 1, "what is timed is the query and nothing else"
    found = session.measures(session.with_notes(answer))
    assert (found.rows, found.logical_reads, found.physical_reads) == (2500, 1010, 900)
    assert (found.read_bytes, found.spill_bytes, found.grant_kib) == (900 * 8192, 210 * 8192, 2048)
    assert (found.cpu_ms, found.actual_dop, found.wait_ms) == (1530, 2, {"PAGEIOLATCH_SH": 812.0})
    assert found.plan_hash == plan_hash(showplan()) and session.limited is None
    assert not [it for it in server.requests if "STATISTICS" in (it.text or "")]
    [asked_of] = {it.connection for it in server.requests if "-- Q1" in (it.text or "")}
    assert all(it.connection != asked_of for it in server.requests if "dm_exec" in (it.text or ""))
    with pytest.raises(CallFailed, match="Invalid object name"):
        session.execute("-- Q3")
    assert session.execute("-- Q1").rows == 2500
    session.close()


@pytest.mark.parametrize(("version", "asks"), [("14.0.3465.1", False), ("15.0.4430.1", True)])
def test_the_plan_with_its_actual_rows_is_taken_where_the_server_keeps_one(new_server, version, asks):
    server = new_server(version=version)
    server.script.sql("@@SPID", rows(["spid"], [57]))
    server.script.sql("^-- Q1", ROWS)
    Notes(server.script)
    session = server.engine().queries(30)
    session.with_notes(session.execute("-- Q1"))
    [noted] = server.asked("dm_exec_query_stats")
    assert ("dm_exec_query_plan_stats" in noted) is asks and ("stats.last_spills" in noted) is asks
    session.close()


def test_what_the_server_does_not_note_is_unknown(engine, asked):
    Notes(asked).stats = [(2500, *[None] * 7)]
    session = engine.queries(30)
    found = session.measures(session.with_notes(session.execute("-- Q1")))
    assert found == Measures(rows=2500, wait_ms={"PAGEIOLATCH_SH": 812.0})
    session.close()


def test_a_server_that_forgets_plans_says_why_only_time_is_known(engine, asked):
    Notes(asked).stats = []
    session = engine.queries(30)
    assert session.measures(session.with_notes(session.execute("-- Q1"))) == Measures(rows=2500)
    assert "optimize for ad hoc workloads" in session.limited
    session.close()


def test_a_login_that_may_not_see_notes_says_so_and_is_asked_no_more(engine, server, asked):
    asked.sql("dm_exec_session_wait_stats", Error(300, "VIEW SERVER STATE permission was denied", severity=14))
    session = engine.queries(30)
    assert "VIEW SERVER STATE permission was denied" in session.limited
    server.forget()
    assert session.measures(session.with_notes(session.execute("-- Q1"))) == Measures(rows=2500)
    assert server.round_trips == 1
    session.close()


@pytest.mark.thorough
def test_a_query_that_takes_too_long(engine, asked):
    Notes(asked)
    session = engine.queries(1)
    with pytest.raises(CallFailed) as failed:
        session.execute("-- Q4")
    assert failed.value.kind is ErrorClass.TIMEOUT
    session.close()


def test_cores(engine, script):
    assert engine.cores() is None, "what the server does not say is unknown"
    script.sql("dm_os_schedulers", Rows([Column("n", INT)], [(16,)]))
    assert engine.cores() == 16

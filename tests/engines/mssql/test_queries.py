"""Queries on SQL Server against a responder: rows are counted, the plan behind them read, what is missing said."""

import pytest
from support.tds.answers import Error, Hold, Rows
from support.tds.datatypes import INT, nvarchar
from support.tds.tokens import Column

from stallmark.engines.mssql.showplan import measures
from stallmark.errors import CallFailed, ErrorClass

ROWS = Rows([Column("n", INT)], [(number,) for number in range(2500)])
SCHEMA = "http://schemas.microsoft.com/sqlserver/2004/07/showplan"


def showplan(
    *,
    dop: str = 'DegreeOfParallelism="2"',
    counters: str = "",
    extra: str = "",
    warnings: str = "",
    scan: str = "Clustered Index Scan",
) -> str:
    """As SQL Server 2019 writes one, without what nobody reads here."""
    return f"""<ShowPlanXML xmlns="{SCHEMA}" Version="1.539" Build="15.0.4000.1"><BatchSequence><Batch><Statements>
<StmtSimple StatementText="-- Q1" QueryPlanHash="0x01"><QueryPlan {dop} CachedPlanSize="56">{warnings}
<MemoryGrantInfo SerialRequiredMemory="512" GrantedMemory="2048" MaxUsedMemory="320" />{extra}
<RelOp NodeId="0" PhysicalOp="Hash Match" LogicalOp="Aggregate" Parallel="1" EstimateRows="4"><Hash>
<RelOp NodeId="1" PhysicalOp="{scan}" LogicalOp="{scan}" Parallel="1" EstimateRows="6e+006">
<RunTimeInformation>{counters}</RunTimeInformation>
<IndexScan><Object Schema="[warehouse]" Table="[lineitem]" Index="[lineitem_pk]" Alias="[l]" /></IndexScan>
</RelOp></Hash></RelOp></QueryPlan></StmtSimple></Statements></Batch></BatchSequence></ShowPlanXML>"""


THREADS = (
    '<RunTimeCountersPerThread Thread="0" ActualRows="0" />'
    '<RunTimeCountersPerThread Thread="1" ActualRows="10" ActualLogicalReads="700" ActualPhysicalReads="3" '
    'ActualReadAheads="600" ActualLobLogicalReads="10" ActualLobPhysicalReads="1" ActualLobReadAheads="4" />'
    '<RunTimeCountersPerThread Thread="2" ActualRows="5" ActualLogicalReads="300" ActualPhysicalReads="2" '
    'ActualReadAheads="290" ActualLobLogicalReads="0" ActualLobPhysicalReads="0" ActualLobReadAheads="0" />'
)
TIMES = (
    '<WaitStats><Wait WaitType="PAGEIOLATCH_SH" WaitTimeMs="812" WaitCount="90" />'
    '<Wait WaitType="CXPACKET" WaitTimeMs="0" WaitCount="1" /></WaitStats>'
    '<QueryTimeStats CpuTime="1530" ElapsedTime="1200" />'
)


def test_what_a_plan_tells():
    found = measures(showplan(counters=THREADS, extra=TIMES), 4)
    assert (found.rows, found.logical_reads, found.physical_reads) == (4, 1010, 900)
    assert (found.read_bytes, found.spill_bytes, found.grant_kib) == (900 * 8192, 0, 2048)
    assert (found.cpu_ms, found.actual_dop, found.wait_ms) == (1530, 2, {"PAGEIOLATCH_SH": 812.0})


def test_what_an_old_server_does_not_tell_is_unknown():
    found = measures(showplan(dop="", counters='<RunTimeCountersPerThread Thread="0" ActualRows="0" />'), None)
    assert [found.logical_reads, found.physical_reads, found.read_bytes] == [None] * 3
    assert [found.cpu_ms, found.wait_ms, found.actual_dop] == [None] * 3


def test_a_plan_that_cannot_be_parallel_has_one_worker():
    assert measures(showplan(dop='DegreeOfParallelism="0" NonParallelPlanReason="MaxDOPSetToOne"'), 1).actual_dop == 1


@pytest.mark.parametrize(
    ("warnings", "spilled"),
    [
        ("", 0),
        ('<Warnings><SpillToTempDb SpillLevel="1" /></Warnings>', None),
        ('<Warnings><SpillToTempDb SpillLevel="1" /><HashSpillDetails GrantedMemoryKb="1" WritesToTempDb="208" '
         'ReadsFromTempDb="208" /><SortSpillDetails WritesToTempDb="2" /></Warnings>', 210 * 8192),
    ],
)  # fmt: skip
def test_spills(warnings, spilled):
    assert measures(showplan(warnings=warnings), 1).spill_bytes == spilled


def test_the_shape_of_a_plan():
    one = measures(showplan(), 1).plan_hash
    assert measures(showplan(counters=THREADS, extra=TIMES), 9).plan_hash == one
    assert measures(showplan(scan="Index Seek"), 1).plan_hash != one
    assert measures(showplan().replace("lineitem_pk", "lineitem_date"), 1).plan_hash != one


def test_what_is_no_plan_is_refused():
    with pytest.raises(ValueError, match="not a plan"):
        measures("<ShowPlanXML", 1)


@pytest.fixture
def asked(script):
    """Whether the server takes SET STATISTICS XML is up to the test."""
    plan = Rows(
        [Column("Microsoft SQL Server 2005 XML Showplan", nvarchar())], [(showplan(counters=THREADS, extra=TIMES),)]
    )
    script.sql("^-- Q1", ROWS, plan)
    script.sql("^-- Q2", ROWS)
    script.sql("^-- Q3", Error(208, "Invalid object name 'warehouse.lineitem'.", severity=16))
    script.sql("^-- Q4", Hold())
    return script


def test_rows_are_counted_and_the_plan_is_taken(engine, server, asked):
    asked.sql("SET STATISTICS XML ON")
    session = engine.queries(30)
    session.set_dop(4)
    server.forget()
    answer = session.execute("-- Q1\nSELECT 1")
    found = session.measures(answer)
    assert answer.rows == found.rows == 2500 and found.physical_reads == 900 and session.limited is None
    assert answer.plan.startswith("<ShowPlanXML") and server.round_trips == 1
    with pytest.raises(CallFailed, match="Invalid object name"):
        session.execute("-- Q3")
    assert session.execute("-- Q1").rows == 2500
    session.close()


def test_a_server_that_sends_no_plan_says_what_is_unknown(engine, asked):
    asked.sql("SET STATISTICS XML ON")
    session = engine.queries(30)
    found = session.measures(session.execute("-- Q2"))
    assert found.rows == 2500 and found.plan_hash is None and found.logical_reads is None and found.wait_ms is None
    assert "sends no plan" in session.limited
    session.close()


def test_a_server_that_refuses_plans_is_asked_no_more(engine, asked):
    asked.sql("SET STATISTICS XML ON", Error(33557097, "'SET STATISTICS XML' is not currently supported", severity=16))
    session = engine.queries(30)
    assert "not currently supported" in session.limited
    assert session.measures(session.execute("-- Q2")).rows == 2500
    session.close()


def test_a_query_that_takes_too_long(engine, asked):
    asked.sql("SET STATISTICS XML ON")
    session = engine.queries(1)
    with pytest.raises(CallFailed) as failed:
        session.execute("-- Q4")
    assert failed.value.kind is ErrorClass.TIMEOUT
    session.close()


def test_cores(engine, script):
    assert engine.cores() is None, "what the server does not say is unknown"
    script.sql("dm_os_schedulers", Rows([Column("n", INT)], [(16,)]))
    assert engine.cores() == 16

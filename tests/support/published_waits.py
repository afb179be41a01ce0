"""Answers of real servers, as others published them. Everything else that the tests feed is made up and says so."""

# Names and values: github.com/influxdata/telegraf, plugins/inputs/sqlserver/sqlserver_test.go, server WIN8-DEV. They
# come without types; these are set as startsql.com/sysdm_os_performance_counters-explained tells them apart.
COUNTERS = [
    ("SQLServer:Buffer Manager", "Background writer pages/sec", "", 0, 272696576),
    ("SQLServer:Buffer Manager", "Buffer cache hit ratio", "", 1, 537003264),
    ("SQLServer:Buffer Manager", "Buffer cache hit ratio base", "", 2448, 1073939712),
    ("SQLServer:Buffer Manager", "Checkpoint pages/sec", "", 0, 272696576),
    ("SQLServer:Buffer Manager", "Database pages", "", 6676, 65792),
    ("SQLServer:Buffer Manager", "Free list stalls/sec", "", 0, 272696576),
    ("SQLServer:Buffer Manager", "Lazy writes/sec", "", 0, 272696576),
    ("SQLServer:Buffer Manager", "Page life expectancy", "", 29730, 65792),
    ("SQLServer:Buffer Manager", "Page lookups/sec", "", 2534, 272696576),
    ("SQLServer:Buffer Manager", "Page reads/sec", "", 0, 272696576),
    ("SQLServer:Buffer Manager", "Page writes/sec", "", 0, 272696576),
    ("SQLServer:Buffer Manager", "Readahead pages/sec", "", 0, 272696576),
    ("SQLServer:Buffer Manager", "Target pages", "", 16367616, 65792),
    ("SQLServer:Databases", "Data File(s) Size (KB)", "_Total", 3512576, 65792),
    ("SQLServer:Databases", "Log Bytes Flushed/sec", "_Total", 307200, 272696576),
    ("SQLServer:Databases", "Log File(s) Size (KB)", "_Total", 570992, 65792),
    ("SQLServer:Databases", "Log Flush Wait Time", "_Total", 0, 65792),
    ("SQLServer:Databases", "Log Flush Waits/sec", "_Total", 0, 272696576),
    ("SQLServer:Databases", "Log Flush Write Time (ms)", "_Total", 1, 65792),
    ("SQLServer:Databases", "Log Flushes/sec", "_Total", 5, 272696576),
    ("SQLServer:Databases", "Log Growths", "_Total", 0, 65792),
    ("SQLServer:Databases", "Percent Log Used", "_Total", 55, 65792),
    ("SQLServer:Databases", "Transactions/sec", "_Total", 6, 272696576),
    ("SQLServer:Databases", "Write Transactions/sec", "_Total", 3, 272696576),
    ("SQLServer:Access Methods", "Page Splits/sec", "", 20, 272696576),
    ("SQLServer:Access Methods", "Workfiles Created/sec", "", 8, 272696576),
    ("SQLServer:Access Methods", "Worktables Created/sec", "", 2, 272696576),
]

# sqlworldwide.com/ring-buffer-monitoring-cpu-what-do-those-values-mean (2020-02-24); the page lacks the last tag.
CPU_RECORD = """\
<Record id = "38446" type ="RING_BUFFER_SCHEDULER_MONITOR" time ="2313297649">
<SchedulerMonitorEvent>
    <SystemHealth>
        <ProcessUtilization>2</ProcessUtilization>
        <SystemIdle>91</SystemIdle>
        <UserModeTime>310468750</UserModeTime>
        <KernelModeTime>35781250</KernelModeTime>
        <PageFaults>7004</PageFaults>
        <WorkingSetDelta>0</WorkingSetDelta>
        <MemoryUtilization>100</MemoryUtilization>
    </SystemHealth>
</SchedulerMonitorEvent>
</Record>"""

# learn.microsoft.com, sys.dm_os_schedulers, example B: current_tasks_count, runnable_tasks_count, work_queue_count.
RUNNABLE_SCHEDULERS = [(107, 98, 0), (110, 100, 0)]

# github.com/MicrosoftDocs/sql-docs/issues/5418 (2020-09-04).
LONG_IO = (
    "SQL Server has encountered 1 occurrence(s) of I/O requests taking longer than 15 seconds to complete on file "
    "[https://xxxx.blob.core.windows.net/yyyy/zzzz.mdf] in database id 10.  The OS file handle is 0x00000250B129D311.  "
    "The offset of the latest long I/O is: 0x00000f2ef6a000.  The duration of the long I/O is: 15759 ms."
)
# The messages as documented (learn.microsoft.com, MSSQLSERVER_823, _824, _825); what they are filled with is made up.
HARD_ERROR = (
    "The operating system returned error 23(Data error (cyclic redundancy check).) to SQL Server during a read at "
    "offset 0x0000001a5de000 in file 'D:\\data\\bank.mdf'. Additional messages in the SQL Server error log and system "
    "event log may provide more detail. This is a severe system-level error condition that threatens "
    "database integrity and must be corrected immediately."
)
CORRUPT_PAGE = (
    "SQL Server detected a logical consistency-based I/O error: incorrect checksum. It occurred during a read of page "
    "(1:153) in database ID 7 at offset 0x00000000132000 in file 'D:\\data\\bank.mdf'.  Additional messages in the SQL "
    "Server error log or system event log may provide more detail."
)
READ_RETRIED = (
    "A read of the file 'D:\\data\\bank.mdf' at offset 0x000000000ec000 succeeded after failing 1 time(s) with error: "
    "incorrect checksum. Additional messages in the SQL Server error log and system event log may provide more detail. "
    "This error condition threatens database integrity and must be corrected."
)

# github.com/microsoft/SqlNexus/issues/1: status and wait_type of a request in sys.dm_exec_requests.
BACKGROUND_REQUEST = ("background", "PAGELATCH_EX")

# github.com/MicrosoftDocs/sql-docs/issues/1452, for both errors; the name of the permission in 2022:
# github.com/amachanic/sp_whoisactive/issues/126.
DENIED = [
    (300, 14, "VIEW SERVER STATE permission was denied on object 'server', database 'master'."),
    (297, 16, "The user does not have permission to perform this action."),
]
# Error 371, as Microsoft's page on the limits of Fabric's SQL endpoint has it for sys.dm_exec_connections; which of the
# two rights it names is the server's.
DENIED_371 = (
    "The user does not have the external policy action 'Microsoft.Sql/Sqlservers/SystemViewsAndFunctions/"
    "Server{0}State/Rows/Select' or permission 'VIEW SERVER {0} STATE' to perform this action."
)
DENIED_2022 = "VIEW SERVER PERFORMANCE STATE permission was denied on object 'server', database 'master'."

# github.com/rudi-bruchez/sql-auditor, review of a plan, as measured there: a histogram with one slot; and that `slots`
# (300) is rounded up (512) in `buckets`, that `truncated` stays 0 when there are more values than slots, and that what
# finds no slot is then counted in another one.
HISTOGRAM = '<HistogramTarget truncated="0" buckets="256"><Slot count="9"><value>0</value></Slot></HistogramTarget>'


# A deadlock graph as the guide "Deadlocks" of SQL Server's documentation has one (xml_report of xml_deadlock_report),
# with our procedures and an index.
DEADLOCK = """<event name="xml_deadlock_report" package="sqlserver" timestamp="2026-03-02T09:00:00.123Z">
<data name="xml_report"><value><deadlock><victim-list><victimProcess id="process27b9b0b9848" /></victim-list>
<process-list>
<process id="process27b9b0b9848" waitresource="KEY: 5:72057594214350848 (1a39e6095155)" lockMode="S"
 clientapp="stallmark-user" hostname="WS8" hostpid="16716" loginname="CONTOSO\\ana" currentdbname="bank"
 isolationlevel="read committed (2)"><executionStack>
<frame procname="bank.brokerage.trade_status" line="9" sqlhandle="0x03">SELECT</frame></executionStack>
<inputbuf>Proc [Database Id = 5 Object Id = 7]</inputbuf></process>
<process id="process27b9ee33c28" waitresource="KEY: 5:72057594214416384 (8194443284a0)" lockMode="X"
 clientapp="stallmark-user" hostname="WS8" hostpid="16716" loginname="CONTOSO\\ana" currentdbname="bank"
 isolationlevel="serializable (4)"><executionStack>
<frame procname="bank.brokerage.trade_result_completion" line="13" sqlhandle="0x03">UPDATE</frame></executionStack>
</process></process-list>
<resource-list>
<keylock objectname="bank.brokerage.trade" indexname="pk_trade" id="lock1" mode="X">
<owner-list><owner id="process27b9ee33c28" mode="X" /></owner-list>
<waiter-list><waiter id="process27b9b0b9848" mode="S" requestType="wait" /></waiter-list></keylock>
<keylock objectname="bank.brokerage.trade" indexname="ix_trade_t_ca_id_t_dts" id="lock2" mode="S">
<owner-list><owner id="process27b9b0b9848" mode="S" /></owner-list>
<waiter-list><waiter id="process27b9ee33c28" mode="X" requestType="wait" /></waiter-list></keylock>
</resource-list></deadlock></value></data></event>"""

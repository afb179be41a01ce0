-- Objects are called "SQLServer:Buffer Manager", in a named instance "MSSQL$NAME:Buffer Manager"; names are padded.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       CONCAT('start ', CONVERT(varchar(23), started.create_date, 126)) AS epoch,
       split.object,
       split.counter,
       split.instance,
       counters.cntr_type AS type,
       counters.cntr_value AS value
  FROM sys.dm_os_performance_counters AS counters
 CROSS APPLY (VALUES (RTRIM(SUBSTRING(counters.object_name, CHARINDEX(':', counters.object_name) + 1, 128))
                          COLLATE Latin1_General_CI_AS,
                      RTRIM(counters.counter_name) COLLATE Latin1_General_CI_AS,
                      RTRIM(counters.instance_name) COLLATE Latin1_General_CI_AS)) AS split (object, counter, instance)
  LEFT JOIN sys.databases AS started ON started.database_id = 2
 WHERE split.object = 'Buffer Manager'
       AND split.counter IN ('Page life expectancy', 'Page reads/sec', 'Page writes/sec', 'Page lookups/sec',
                             'Readahead pages/sec', 'Checkpoint pages/sec', 'Background writer pages/sec',
                             'Lazy writes/sec', 'Free list stalls/sec', 'Buffer cache hit ratio',
                             'Buffer cache hit ratio base', 'Target pages', 'Database pages')
    OR split.object = 'Memory Manager'
       AND split.counter IN ('Target Server Memory (KB)', 'Total Server Memory (KB)', 'Stolen Server Memory (KB)',
                             'Memory Grants Pending')
    OR split.object = 'Buffer Node' AND split.counter = 'Page life expectancy'
    OR split.object = 'SQL Statistics'
       AND split.counter IN ('Batch Requests/sec', 'SQL Compilations/sec', 'SQL Re-Compilations/sec')
    OR split.object = 'Databases' AND split.instance IN (DB_NAME() COLLATE Latin1_General_CI_AS, 'tempdb')
       AND split.counter IN ('Transactions/sec', 'Write Transactions/sec', 'Log Flushes/sec', 'Log Flush Waits/sec',
                             'Log Flush Wait Time', 'Log Flush Write Time (ms)', 'Log Bytes Flushed/sec',
                             'Data File(s) Size (KB)', 'Log File(s) Size (KB)', 'Log Growths', 'Percent Log Used')
    OR split.object = 'Database Replica' AND split.instance IN (DB_NAME() COLLATE Latin1_General_CI_AS)
       AND split.counter IN ('Transaction Delay', 'Mirrored Write Transactions/sec')
    OR split.object = 'Locks' AND split.instance = '_Total'
       AND split.counter IN ('Number of Deadlocks/sec', 'Lock Waits/sec', 'Lock Wait Time (ms)',
                             'Average Wait Time (ms)', 'Average Wait Time Base')
    OR split.object = 'Access Methods'
       AND split.counter IN ('Page Splits/sec', 'Full Scans/sec', 'Index Searches/sec', 'Forwarded Records/sec',
                             'Workfiles Created/sec', 'Worktables Created/sec')
    OR split.object = 'General Statistics'
       AND split.counter IN ('User Connections', 'Processes blocked')

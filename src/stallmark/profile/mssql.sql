-- [moment]
-- tempdb is created whenever the server starts.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_clock,
       CONVERT(varchar(23), started.create_date, 126) AS [start],
       CAST(own.cpu_time AS bigint) AS own_cpu_ms
  FROM sys.dm_exec_sessions AS own
  LEFT JOIN sys.databases AS started ON started.database_id = 2
 WHERE own.session_id = @@SPID

-- [files]
-- Of a connection to master all databases of users are meant, else the one it is to: the others are "other" then.
-- sys.master_files shows nothing to a login without VIEW ANY DEFINITION: file 2 is then taken to be the log.
-- RDS has a database of its own on every server, rdsadmin; the server has some from number 32761 on (model_msdb and
-- model_replicatedmaster from 2022 on, and its resources). A restored or attached database has new handles.
SELECT CONCAT(io.database_id, '/', io.file_id) AS entity,
       io.database_id,
       DB_NAME(io.database_id) AS [database],
       named.name AS [file],
       CASE WHEN io.database_id = 2 THEN 'tempdb'
            WHEN (io.database_id IN (1, 3, 4) OR io.database_id >= 32761)
                 AND io.database_id <> CASE DB_ID() WHEN 1 THEN 0 ELSE DB_ID() END
                 OR DB_ID() <> 1 AND io.database_id <> DB_ID()
                 OR DB_NAME(io.database_id) COLLATE Latin1_General_CI_AS = 'rdsadmin' THEN 'other'
            WHEN COALESCE(named.type, CASE io.file_id WHEN 2 THEN 1 ELSE 0 END) = 1 THEN 'log'
            ELSE 'data' END AS file_class,
       CONCAT(CONVERT(varchar(23), home.create_date, 126), ' ', CONVERT(varchar(66), io.file_handle, 1)) AS epoch,
       io.num_of_reads AS reads,
       io.num_of_bytes_read AS read_bytes,
       CAST(io.io_stall_read_ms AS float) AS read_stall_ms,
       io.num_of_writes AS writes,
       io.num_of_bytes_written AS write_bytes,
       CAST(io.io_stall_write_ms AS float) AS write_stall_ms,
       io.size_on_disk_bytes AS size_bytes
  FROM sys.dm_io_virtual_file_stats(NULL, NULL) AS io
  LEFT JOIN sys.master_files AS named ON named.database_id = io.database_id AND named.file_id = io.file_id
  LEFT JOIN sys.databases AS home ON home.database_id = io.database_id

-- [counters]
-- Objects are called "SQLServer:Buffer Manager", in a named instance "MSSQL$NAME:Buffer Manager"; names are padded.
-- RDS has a database of its own on every server, rdsadmin; the server two that are hidden, from 2022 on.
-- The counters of the databases are added up: when one is dropped or comes, `sources` changes, and counting begins anew.
SELECT known.counter,
       CAST(COUNT(*) AS bigint) AS sources,
       SUM(counters.cntr_value * known.factor) AS value
  FROM sys.dm_os_performance_counters AS counters
 CROSS APPLY (VALUES (RTRIM(SUBSTRING(counters.object_name, CHARINDEX(':', counters.object_name) + 1, 128))
                          COLLATE Latin1_General_CI_AS,
                      RTRIM(counters.counter_name) COLLATE Latin1_General_CI_AS,
                      RTRIM(counters.instance_name) COLLATE Latin1_General_CI_AS)) AS split (object, counter, instance)
  JOIN (VALUES ('log_flushes', 'Databases', 'Log Flushes/sec', 1),
               ('log_bytes', 'Databases', 'Log Bytes Flushed/sec', 1),
               ('transactions', 'Databases', 'Transactions/sec', 1),
               ('batches', 'SQL Statistics', 'Batch Requests/sec', 1),
               ('memory_target_bytes', 'Memory Manager', 'Target Server Memory (KB)', 1024),
               ('stolen_bytes', 'Memory Manager', 'Stolen Server Memory (KB)', 1024),
               ('database_pages_bytes', 'Buffer Manager', 'Database pages', 8192),
               ('page_life_expectancy_s', 'Buffer Manager', 'Page life expectancy', 1),
               ('connections', 'General Statistics', 'User Connections', 1),
               ('checkpoint_pages', 'Buffer Manager', 'Checkpoint pages/sec', 1),
               ('checkpoint_pages', 'Buffer Manager', 'Background writer pages/sec', 1),
               ('background_pages', 'Buffer Manager', 'Lazy writes/sec', 1),
               ('pages_read', 'Buffer Manager', 'Page reads/sec', 1),
               ('readahead_pages', 'Buffer Manager', 'Readahead pages/sec', 1),
               ('page_lookups', 'Buffer Manager', 'Page lookups/sec', 1)) AS known (counter, object, name, factor)
    ON known.object COLLATE Latin1_General_CI_AS = split.object AND known.name COLLATE Latin1_General_CI_AS = split.counter
 WHERE split.object <> 'Databases'
       OR DB_ID() = 1 AND split.instance NOT IN ('_Total', 'master', 'tempdb', 'model', 'msdb', 'mssqlsystemresource',
                                                 'rdsadmin', 'model_msdb', 'model_replicatedmaster')
       OR DB_ID() <> 1 AND split.instance = DB_NAME() COLLATE Latin1_General_CI_AS
 GROUP BY known.counter
 UNION ALL
SELECT 'cpu_ms', 1, system.process_kernel_time_ms + system.process_user_time_ms
  FROM sys.dm_os_sys_info AS system

-- [waits]
SELECT wait.wait_type,
       wait.waiting_tasks_count AS waits,
       wait.wait_time_ms AS wait_ms,
       wait.signal_wait_time_ms AS signal_ms
  FROM sys.dm_os_wait_stats AS wait
 WHERE wait.waiting_tasks_count > 0 OR wait.wait_time_ms > 0

-- [facts]
SELECT CAST(SERVERPROPERTY('ServerName') AS nvarchar(128)) AS name,
       CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)) AS version,
       CAST(SERVERPROPERTY('Edition') AS nvarchar(128)) AS edition,
       (SELECT COUNT(*) FROM sys.dm_os_schedulers WHERE status = 'VISIBLE ONLINE') AS cores,
       system.physical_memory_kb * 1024 AS memory_bytes,
       system.committed_target_kb * 1024 AS pool_bytes
  FROM sys.dm_os_sys_info AS system

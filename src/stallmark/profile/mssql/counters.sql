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

SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       'database' AS epoch,
       wait.wait_type,
       wait.waiting_tasks_count AS waits,
       wait.wait_time_ms AS wait_ms,
       wait.signal_wait_time_ms AS signal_ms,
       wait.max_wait_time_ms AS max_ms
  FROM sys.dm_db_wait_stats AS wait
 WHERE wait.waiting_tasks_count > 0 OR wait.wait_time_ms > 0

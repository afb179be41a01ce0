SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       CONCAT('start ', CONVERT(varchar(23), started.create_date, 126)) AS epoch,
       wait.wait_type,
       wait.waiting_tasks_count AS waits,
       wait.wait_time_ms AS wait_ms,
       wait.signal_wait_time_ms AS signal_ms,
       wait.max_wait_time_ms AS max_ms
  FROM sys.dm_os_wait_stats AS wait
  LEFT JOIN sys.databases AS started ON started.database_id = 2
 WHERE wait.waiting_tasks_count > 0 OR wait.wait_time_ms > 0

SELECT wait.wait_type,
       wait.waiting_tasks_count AS waits,
       wait.wait_time_ms AS wait_ms,
       wait.signal_wait_time_ms AS signal_ms
  FROM sys.dm_os_wait_stats AS wait
 WHERE wait.waiting_tasks_count > 0 OR wait.wait_time_ms > 0

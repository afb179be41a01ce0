SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       COUNT(*) AS schedulers,
       SUM(scheduler.current_tasks_count) AS tasks,
       SUM(scheduler.runnable_tasks_count) AS runnable,
       MAX(scheduler.runnable_tasks_count) AS most_runnable,
       SUM(scheduler.work_queue_count) AS waiting_for_worker,
       SUM(scheduler.pending_disk_io_count) AS pending_disk_ios
  FROM sys.dm_os_schedulers AS scheduler
 WHERE scheduler.status = 'VISIBLE ONLINE'

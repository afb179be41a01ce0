-- Counts begin anew with the session, so its start is part of its name.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       CONCAT('start ', CONVERT(varchar(23), started.create_date, 126)) AS epoch,
       CONCAT(wait.session_id, ' since ', CONVERT(varchar(23), session.login_time, 126)) AS session,
       wait.wait_type,
       wait.waiting_tasks_count AS waits,
       wait.wait_time_ms AS wait_ms,
       wait.signal_wait_time_ms AS signal_ms,
       wait.max_wait_time_ms AS max_ms
  FROM sys.dm_exec_sessions AS session
  JOIN sys.dm_exec_session_wait_stats AS wait ON wait.session_id = session.session_id
  LEFT JOIN sys.databases AS started ON started.database_id = 2
 WHERE session.program_name LIKE 'stallmark-user%'
   AND session.database_id IN (DB_ID())

-- The sessions that have a lock of ours in this database, by the lock's name.
SELECT s.session_id, RTRIM(s.program_name) AS program_name, s.login_name, s.host_name
  FROM sys.dm_tran_locks AS l
  JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id
 WHERE l.resource_type = 'APPLICATION'
   AND l.request_status = 'GRANT'
   AND l.resource_database_id = DB_ID()
   AND CHARINDEX(?, l.resource_description) > 0

-- [other_sessions]
-- The sessions in this database that are not Stallmark's. Without a right to see them there are none.
SELECT s.session_id, RTRIM(s.program_name) AS program_name, s.login_name, s.host_name
  FROM sys.dm_exec_sessions AS s
 WHERE s.is_user_process = 1
   AND s.database_id = DB_ID()
   AND s.session_id <> @@SPID
   AND COALESCE(s.program_name, '') NOT LIKE 'stallmark-%'
 ORDER BY s.session_id

-- [blockers]
-- The sessions that keep ours in this database from a lock.
SELECT DISTINCT other.session_id, RTRIM(other.program_name) AS program_name, other.login_name, other.host_name
  FROM sys.dm_exec_requests AS request
  JOIN sys.dm_exec_sessions AS ours ON ours.session_id = request.session_id
  JOIN sys.dm_exec_sessions AS other ON other.session_id = request.blocking_session_id
 WHERE request.database_id = DB_ID()
   AND ours.program_name LIKE 'stallmark-%'
 ORDER BY other.session_id

-- [lock_holders]
-- The sessions that have a lock of ours in this database, by the lock's name.
SELECT s.session_id, RTRIM(s.program_name) AS program_name, s.login_name, s.host_name
  FROM sys.dm_tran_locks AS l
  JOIN sys.dm_exec_sessions AS s ON s.session_id = l.request_session_id
 WHERE l.resource_type = 'APPLICATION'
   AND l.request_status = 'GRANT'
   AND l.resource_database_id = DB_ID()
   AND CHARINDEX(?, l.resource_description) > 0

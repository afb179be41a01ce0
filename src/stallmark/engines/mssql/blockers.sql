-- The sessions that keep ours in this database from a lock.
SELECT DISTINCT other.session_id, RTRIM(other.program_name) AS program_name, other.login_name, other.host_name
  FROM sys.dm_exec_requests AS request
  JOIN sys.dm_exec_sessions AS ours ON ours.session_id = request.session_id
  JOIN sys.dm_exec_sessions AS other ON other.session_id = request.blocking_session_id
 WHERE request.database_id = DB_ID()
   AND ours.program_name LIKE 'stallmark-%'
 ORDER BY other.session_id

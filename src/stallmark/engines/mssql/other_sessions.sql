-- The sessions in this database that are not Stallmark's. Without a right to see them there are none.
SELECT s.session_id, RTRIM(s.program_name) AS program_name, s.login_name, s.host_name
  FROM sys.dm_exec_sessions AS s
 WHERE s.is_user_process = 1
   AND s.database_id = DB_ID()
   AND s.session_id <> @@SPID
   AND COALESCE(s.program_name, '') NOT LIKE 'stallmark-%'
 ORDER BY s.session_id

-- A session without a request is idle. Without VIEW SERVER STATE a login sees its own session only, and no error.
SELECT session.program_name AS application,
       request.status,
       request.wait_type,
       COUNT(*) AS users
  FROM sys.dm_exec_sessions AS session
  LEFT JOIN sys.dm_exec_requests AS request ON request.session_id = session.session_id
 WHERE session.program_name LIKE 'stallmark-user%'
   AND session.database_id IN (DB_ID())
 GROUP BY session.program_name, request.status, request.wait_type

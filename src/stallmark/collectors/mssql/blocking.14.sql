-- The users' sessions that another one blocks, with what both are at: a procedure, or the beginning of a batch.
SELECT COALESCE(OBJECT_SCHEMA_NAME(asked.objectid, asked.dbid) + '.' + OBJECT_NAME(asked.objectid, asked.dbid),
                LEFT(asked.text, 60)) AS blocked,
       COALESCE(OBJECT_SCHEMA_NAME(held.objectid, held.dbid) + '.' + OBJECT_NAME(held.objectid, held.dbid),
                LEFT(held.text, 60)) AS blocker,
       request.wait_type
  FROM sys.dm_exec_requests AS request
  JOIN sys.dm_exec_sessions AS session ON session.session_id = request.session_id
  LEFT JOIN sys.dm_exec_connections AS holder
    ON holder.session_id = request.blocking_session_id AND holder.parent_connection_id IS NULL
 OUTER APPLY sys.dm_exec_sql_text(request.sql_handle) AS asked
 OUTER APPLY sys.dm_exec_sql_text(holder.most_recent_sql_handle) AS held
 WHERE request.blocking_session_id > 0 AND session.program_name LIKE 'stallmark-user%'

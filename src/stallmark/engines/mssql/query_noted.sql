-- What the server noted of the last batch of a session, and its plan as it was compiled.
SELECT TOP (1)
       stats.last_rows, stats.last_logical_reads, stats.last_physical_reads, stats.last_worker_time, stats.last_dop,
       stats.last_grant_kb, CAST(NULL AS bigint) AS last_spills, CAST(compiled.query_plan AS nvarchar(max)) AS query_plan
  FROM sys.dm_exec_connections AS connection
  JOIN sys.dm_exec_query_stats AS stats ON stats.sql_handle = connection.most_recent_sql_handle
 OUTER APPLY sys.dm_exec_query_plan(stats.plan_handle) AS compiled
 WHERE connection.session_id = {session} AND connection.parent_connection_id IS NULL
 ORDER BY stats.last_execution_time DESC

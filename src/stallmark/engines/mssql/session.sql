-- [parameters]
-- The parameters of a procedure in their order, by the types they are declared with.
SELECT TYPE_NAME(p.system_type_id) AS type_name, CAST(p.max_length AS integer) AS bytes,
       CAST(p.[precision] AS integer) AS digits, CAST(p.scale AS integer) AS decimals
  FROM sys.parameters AS p
 WHERE p.object_id = OBJECT_ID(N'{procedure}')
   AND p.parameter_id > 0
 ORDER BY p.parameter_id

-- [query_waits]
SELECT wait_type, wait_time_ms FROM sys.dm_exec_session_wait_stats WHERE session_id = {session} AND wait_time_ms > 0

-- [query_noted]
-- What the server noted of the last batch of a session, and its plan as it was compiled.
SELECT TOP (1)
       stats.last_rows, stats.last_logical_reads, stats.last_physical_reads, stats.last_worker_time, stats.last_dop,
       stats.last_grant_kb, CAST(NULL AS bigint) AS last_spills, CAST(compiled.query_plan AS nvarchar(max)) AS query_plan
  FROM sys.dm_exec_connections AS connection
  JOIN sys.dm_exec_query_stats AS stats ON stats.sql_handle = connection.most_recent_sql_handle
 OUTER APPLY sys.dm_exec_query_plan(stats.plan_handle) AS compiled
 WHERE connection.session_id = {session} AND connection.parent_connection_id IS NULL
 ORDER BY stats.last_execution_time DESC

-- [query_noted.15]
-- The same from 2019 on: with what spilled to tempdb, and with the actual rows of the plan's last execution where
-- LAST_QUERY_PLAN_STATS is on.
SELECT TOP (1)
       stats.last_rows, stats.last_logical_reads, stats.last_physical_reads, stats.last_worker_time, stats.last_dop,
       stats.last_grant_kb, stats.last_spills,
       CAST(COALESCE(actual.query_plan, compiled.query_plan) AS nvarchar(max)) AS query_plan
  FROM sys.dm_exec_connections AS connection
  JOIN sys.dm_exec_query_stats AS stats ON stats.sql_handle = connection.most_recent_sql_handle
 OUTER APPLY sys.dm_exec_query_plan(stats.plan_handle) AS compiled
 OUTER APPLY sys.dm_exec_query_plan_stats(stats.plan_handle) AS actual
 WHERE connection.session_id = {session} AND connection.parent_connection_id IS NULL
 ORDER BY stats.last_execution_time DESC

-- Batches of ours: a row for each cached plan of each statement in one. The driver puts the types of parameters before
-- its text; that `declared` is only that is checked when the row is read.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       'plan cache' AS epoch,
       ours.[statement] AS [statement],
       CONCAT(CONVERT(varchar(130), used.sql_handle, 1), ' ', CONVERT(varchar(130), used.plan_handle, 1), ' ',
              used.statement_start_offset, ' ', CONVERT(varchar(23), used.creation_time, 126)) AS [plan],
       CASE WHEN COUNT(*) OVER (PARTITION BY used.sql_handle, used.plan_handle) = 1 THEN used.execution_count END
           AS executions,
       used.total_logical_reads AS logical_reads,
       used.total_physical_reads AS physical_reads,
       CASE WHEN DATALENGTH(batch.text) > DATALENGTH(ours.[text])
            THEN LEFT(batch.text, (DATALENGTH(batch.text) - DATALENGTH(ours.[text])) / 2) END AS declared
  FROM sys.dm_exec_query_stats AS used
 CROSS APPLY sys.dm_exec_sql_text(used.sql_handle) AS batch
 CROSS APPLY sys.dm_exec_plan_attributes(used.plan_handle) AS place
  JOIN (VALUES (N'statement', N'text', N'procedure')) AS ours ([statement], [text], [procedure])
    ON RIGHT(batch.text, DATALENGTH(ours.[text]) / 2) = ours.[text] COLLATE Latin1_General_BIN2
 WHERE place.attribute = N'dbid' AND place.value = DB_ID()
 UNION ALL
-- Procedures that a statement of ours calls and does nothing else.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       'plan cache' AS epoch,
       ours.[statement] AS [statement],
       CONCAT(CONVERT(varchar(130), cached.sql_handle, 1), ' ', CONVERT(varchar(130), cached.plan_handle, 1), ' ',
              CONVERT(varchar(23), cached.cached_time, 126)) AS [plan],
       cached.execution_count AS executions,
       cached.total_logical_reads AS logical_reads,
       cached.total_physical_reads AS physical_reads,
       '' AS declared
  FROM sys.dm_exec_procedure_stats AS cached
  JOIN (VALUES (N'statement', N'text', N'procedure')) AS ours ([statement], [text], [procedure])
    ON cached.object_id = OBJECT_ID(ours.[procedure])
 WHERE cached.database_id = DB_ID()

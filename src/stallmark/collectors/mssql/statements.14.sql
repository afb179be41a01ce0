-- One row for each cached plan of each statement of our databases' procedures; its counts begin when it enters the cache.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       'plan cache' AS epoch,
       COALESCE(OBJECT_SCHEMA_NAME(cached.object_id, cached.database_id) + '.'
                    + OBJECT_NAME(cached.object_id, cached.database_id),
                CONCAT('object ', cached.object_id)) AS [procedure],
       DB_NAME(cached.database_id) AS [database],
       CAST(used.statement_start_offset AS bigint) AS begins,
       CAST(used.statement_end_offset AS bigint) AS ends,
       CONVERT(varchar(18), used.query_plan_hash, 1) AS plan_hash,
       CONVERT(varchar(130), used.plan_handle, 1) AS plan_handle,
       CONCAT(CONVERT(varchar(130), used.sql_handle, 1), ' ', CONVERT(varchar(23), used.creation_time, 126)) AS [plan],
       SUBSTRING(batch.text, used.statement_start_offset / 2 + 1, 120) AS [text],
       used.execution_count AS executions,
       used.total_worker_time AS worker_us,
       used.total_elapsed_time AS elapsed_us,
       used.total_physical_reads AS physical_reads,
       used.total_logical_reads AS logical_reads
  FROM sys.dm_exec_procedure_stats AS cached
  JOIN sys.dm_exec_query_stats AS used
    ON used.sql_handle = cached.sql_handle AND used.plan_handle = cached.plan_handle
 CROSS APPLY sys.dm_exec_sql_text(used.sql_handle) AS batch
 WHERE cached.database_id IN (DB_ID())

-- One row for each cached plan of each procedure; its counts begin when it enters the cache.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       'plan cache' AS epoch,
       COALESCE(OBJECT_SCHEMA_NAME(cached.object_id, cached.database_id) + '.'
                    + OBJECT_NAME(cached.object_id, cached.database_id),
                CONCAT('object ', cached.object_id)) AS [procedure],
       DB_NAME(cached.database_id) AS [database],
       CONCAT(CONVERT(varchar(130), cached.sql_handle, 1), ' ', CONVERT(varchar(130), cached.plan_handle, 1), ' ',
              CONVERT(varchar(23), cached.cached_time, 126)) AS [plan],
       cached.execution_count AS executions,
       cached.total_worker_time AS worker_us,
       cached.total_elapsed_time AS elapsed_us,
       cached.total_physical_reads AS physical_reads,
       cached.total_logical_reads AS logical_reads,
       cached.total_logical_writes AS logical_writes,
       cached.total_spills AS spills
  FROM sys.dm_exec_procedure_stats AS cached
 WHERE cached.database_id IN (DB_ID())

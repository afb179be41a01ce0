-- The store of a primary also has what its secondaries counted, from 2025 on and in Azure: ours is the primary's
-- (role 1; 3 of a geo-primary), as the load writes. A group without a role is not known to be another's.
-- Totals of every plan in the interval that Query Store is at, and in the one before for two more minutes. Of the
-- interval under way a plan may have several rows, on disk and in memory, which are to be added up.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       'query store' AS epoch,
       CASE WHEN asked.object_id = 0 THEN 'outside procedures'
            ELSE COALESCE(OBJECT_SCHEMA_NAME(asked.object_id) + '.' + OBJECT_NAME(asked.object_id),
                          CONCAT('object ', asked.object_id)) END AS [procedure],
       CONCAT(used.plan_id, ' in ', used.runtime_stats_interval_id, ' as ', used.execution_type) AS [plan],
       SUM(used.count_executions) AS executions,
       SUM(used.avg_cpu_time * used.count_executions) AS worker_us,
       SUM(used.avg_duration * used.count_executions) AS elapsed_us,
       SUM(used.avg_physical_io_reads * used.count_executions) AS physical_reads,
       SUM(used.avg_logical_io_reads * used.count_executions) AS logical_reads,
       SUM(used.avg_logical_io_writes * used.count_executions) AS logical_writes
  FROM sys.query_store_runtime_stats AS used
  JOIN sys.query_store_runtime_stats_interval AS span
    ON span.runtime_stats_interval_id = used.runtime_stats_interval_id
  JOIN sys.query_store_plan AS compiled ON compiled.plan_id = used.plan_id
  JOIN sys.query_store_query AS asked ON asked.query_id = compiled.query_id
 WHERE span.end_time > DATEADD(minute, -2, SYSDATETIMEOFFSET())
   AND NOT EXISTS (SELECT 1
                     FROM sys.query_store_replicas AS other
                    WHERE other.replica_group_id = used.replica_group_id
                      AND other.role_type NOT IN (1, 3))
 GROUP BY asked.object_id, used.plan_id, used.runtime_stats_interval_id, used.execution_type

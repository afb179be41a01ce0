-- The store of a primary also has what its secondaries counted, from 2025 on and in Azure: ours is the primary's
-- (role 1; 3 of a geo-primary), as the load writes. A group without a role is not known to be another's.
-- The same for what the statements of every plan waited for.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       'query store' AS epoch,
       CONCAT(CASE WHEN asked.object_id = 0 THEN 'outside procedures'
                   ELSE COALESCE(OBJECT_SCHEMA_NAME(asked.object_id) + '.' + OBJECT_NAME(asked.object_id),
                                 CONCAT('object ', asked.object_id)) END,
              ': ', waited.wait_category_desc) AS [wait],
       CONCAT(waited.plan_id, ' in ', waited.runtime_stats_interval_id, ' as ', waited.execution_type) AS [plan],
       SUM(waited.total_query_wait_time_ms) AS wait_ms
  FROM sys.query_store_wait_stats AS waited
  JOIN sys.query_store_runtime_stats_interval AS span
    ON span.runtime_stats_interval_id = waited.runtime_stats_interval_id
  JOIN sys.query_store_plan AS compiled ON compiled.plan_id = waited.plan_id
  JOIN sys.query_store_query AS asked ON asked.query_id = compiled.query_id
 WHERE span.end_time > DATEADD(minute, -2, SYSDATETIMEOFFSET())
   AND NOT EXISTS (SELECT 1
                     FROM sys.query_store_replicas AS other
                    WHERE other.replica_group_id = waited.replica_group_id
                      AND other.role_type NOT IN (1, 3))
 GROUP BY asked.object_id, waited.wait_category_desc, waited.plan_id, waited.runtime_stats_interval_id,
          waited.execution_type

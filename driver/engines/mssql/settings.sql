-- What decides I/O, of the server and of the database, as name and value. A line for each thing a reader needs to
-- repeat the run; columns that a version does not have are asked for in settings.<major>.sql.
SELECT name, CAST(value_in_use AS nvarchar(200)) AS value
  FROM sys.configurations
 WHERE name IN ('max server memory (MB)', 'min server memory (MB)', 'max degree of parallelism',
                'cost threshold for parallelism', 'recovery interval (min)', 'backup compression default',
                'max worker threads', 'lightweight pooling', 'priority boost', 'optimize for ad hoc workloads')
UNION ALL
SELECT 'database ' + setting, value
  FROM (SELECT CAST(recovery_model_desc AS nvarchar(200)) AS recovery_model,
               CAST(page_verify_option_desc AS nvarchar(200)) AS page_verify,
               CAST(snapshot_isolation_state_desc AS nvarchar(200)) AS snapshot_isolation,
               CAST(is_read_committed_snapshot_on AS nvarchar(200)) AS read_committed_snapshot,
               CAST(compatibility_level AS nvarchar(200)) AS compatibility_level,
               CAST(delayed_durability_desc AS nvarchar(200)) AS delayed_durability,
               CAST(target_recovery_time_in_seconds AS nvarchar(200)) AS target_recovery_time_s,
               CAST(is_query_store_on AS nvarchar(200)) AS query_store,
               CAST(is_encrypted AS nvarchar(200)) AS encrypted,
               CAST(is_auto_shrink_on AS nvarchar(200)) AS auto_shrink,
               CAST(log_reuse_wait_desc AS nvarchar(200)) AS log_reuse_wait,
               CAST(collation_name AS nvarchar(200)) AS collation
          FROM sys.databases
         WHERE database_id = DB_ID()) AS d
UNPIVOT (value FOR setting IN (recovery_model, page_verify, snapshot_isolation, read_committed_snapshot,
                               compatibility_level, delayed_durability, target_recovery_time_s, query_store,
                               encrypted, auto_shrink, log_reuse_wait, collation)) AS u

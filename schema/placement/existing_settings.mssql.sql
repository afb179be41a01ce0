-- The settings of the current database that a physical design may say.
SELECT LOWER(recovery_model_desc) AS recovery,
       is_read_committed_snapshot_on AS read_committed_snapshot,
       snapshot_isolation_state_desc AS snapshot_isolation,
       compatibility_level,
       target_recovery_time_in_seconds AS target_recovery_time_s,
       LOWER(delayed_durability_desc) AS delayed_durability,
       LOWER(page_verify_option_desc) AS page_verify,
       (SELECT CAST(value AS bit) FROM sys.database_scoped_configurations
         WHERE name = 'LEGACY_CARDINALITY_ESTIMATION') AS legacy_cardinality_estimation,
       CASE WHEN is_auto_update_stats_on = 0 THEN 'off' WHEN is_auto_update_stats_async_on = 1 THEN 'async' ELSE 'on'
       END AS auto_update_statistics
  FROM sys.databases
 WHERE database_id = DB_ID();

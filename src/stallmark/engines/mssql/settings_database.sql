-- Of the database, what decides I/O: one row.
SELECT d.recovery_model_desc AS recovery_model, d.page_verify_option_desc AS page_verify,
       d.snapshot_isolation_state_desc AS snapshot_isolation,
       d.is_read_committed_snapshot_on AS read_committed_snapshot, d.compatibility_level,
       d.delayed_durability_desc AS delayed_durability,
       d.target_recovery_time_in_seconds AS target_recovery_time_s, d.is_query_store_on AS query_store,
       d.is_encrypted AS encrypted, d.is_auto_shrink_on AS auto_shrink, d.log_reuse_wait_desc AS log_reuse_wait,
       d.is_auto_close_on AS auto_close,
       d.collation_name AS collation, d.is_auto_create_stats_on AS auto_create_statistics,
       d.is_auto_update_stats_on AS auto_update_statistics,
       d.is_auto_update_stats_async_on AS auto_update_statistics_later
  FROM sys.databases AS d
 WHERE d.database_id = DB_ID()

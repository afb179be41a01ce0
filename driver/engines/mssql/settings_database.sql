-- Of the database, what decides I/O: one row.
SELECT recovery_model_desc AS recovery_model, page_verify_option_desc AS page_verify,
       snapshot_isolation_state_desc AS snapshot_isolation, is_read_committed_snapshot_on AS read_committed_snapshot,
       compatibility_level, delayed_durability_desc AS delayed_durability,
       target_recovery_time_in_seconds AS target_recovery_time_s, is_query_store_on AS query_store,
       is_encrypted AS encrypted, is_auto_shrink_on AS auto_shrink, log_reuse_wait_desc AS log_reuse_wait,
       collation_name AS collation
  FROM sys.databases
 WHERE database_id = DB_ID()

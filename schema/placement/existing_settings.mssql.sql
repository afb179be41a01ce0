-- The settings of the current database that a physical design may say.
SELECT LOWER(recovery_model_desc) AS recovery,
       is_read_committed_snapshot_on AS read_committed_snapshot,
       snapshot_isolation_state_desc AS snapshot_isolation,
       compatibility_level,
       target_recovery_time_in_seconds AS target_recovery_time_s,
       LOWER(delayed_durability_desc) AS delayed_durability,
       LOWER(page_verify_option_desc) AS page_verify
  FROM sys.databases
 WHERE database_id = DB_ID();

-- Whether the log is kept until it is backed up: in no database before its first full backup. One row.
SELECT CASE WHEN r.last_log_backup_lsn IS NULL THEN 0 ELSE 1 END AS log_kept_for_backup
  FROM sys.database_recovery_status AS r
 WHERE r.database_id = DB_ID()

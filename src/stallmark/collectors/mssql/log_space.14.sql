SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       log.total_log_size_in_bytes AS size_bytes,
       log.used_log_space_in_bytes AS used_bytes,
       log.log_space_in_bytes_since_last_backup AS since_backup_bytes,
       home.log_reuse_wait_desc AS reuse_wait
  FROM sys.dm_db_log_space_usage AS log
  LEFT JOIN sys.databases AS home ON home.database_id = log.database_id

-- Whether Query Store still writes, and what: it stops by itself, as when it is full, and people change what it captures.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       'query store' AS epoch,
       options.actual_state_desc AS state,
       options.readonly_reason,
       options.query_capture_mode_desc AS capture,
       options.wait_stats_capture_mode_desc AS wait_capture,
       options.current_storage_size_mb * 1048576 AS stored_bytes,
       options.max_storage_size_mb * 1048576 AS most_bytes
  FROM sys.database_query_store_options AS options

SELECT extract(epoch FROM statement_timestamp())::float8 AS server_time,
       format('reset %s start %s', extract(epoch FROM wal.stats_reset),
              extract(epoch FROM pg_postmaster_start_time())) AS epoch,
       wal.wal_records AS records,
       wal.wal_fpi AS full_page_images,
       wal.wal_bytes::bigint AS bytes,
       wal.wal_buffers_full AS buffers_full,
       wal.wal_write AS writes,
       wal.wal_sync AS syncs,
       CASE WHEN setting.timed THEN wal.wal_write_time END AS write_ms,
       CASE WHEN setting.timed THEN wal.wal_sync_time END AS sync_ms
  FROM pg_stat_wal wal,
       (SELECT current_setting('track_wal_io_timing')::boolean AS timed) setting

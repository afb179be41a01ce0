SELECT extract(epoch FROM statement_timestamp())::float8 AS server_time,
       format('reset %s start %s', extract(epoch FROM stats_reset),
              extract(epoch FROM pg_postmaster_start_time())) AS epoch,
       wal_records AS records,
       wal_fpi AS full_page_images,
       wal_bytes::bigint AS bytes,
       wal_buffers_full AS buffers_full,
       NULL::bigint AS writes,
       NULL::bigint AS syncs,
       NULL::float8 AS write_ms,
       NULL::float8 AS sync_ms
  FROM pg_stat_wal

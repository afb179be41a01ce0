SELECT extract(epoch FROM statement_timestamp())::float8 AS server_time,
       format('reset %s start %s', extract(epoch FROM io.stats_reset),
              extract(epoch FROM pg_postmaster_start_time())) AS epoch,
       concat_ws('/', io.backend_type, io.object, io.context) AS entity,
       CASE io.object WHEN 'temp relation' THEN 'temp' WHEN 'wal' THEN 'wal' ELSE 'data' END AS kind,
       io.reads,
       io.read_bytes::bigint AS read_bytes,
       CASE WHEN setting.timed THEN io.read_time END AS read_stall_ms,
       io.writes,
       io.write_bytes::bigint AS write_bytes,
       CASE WHEN setting.timed THEN io.write_time END AS write_stall_ms,
       io.extends,
       io.extend_bytes::bigint AS extend_bytes,
       CASE WHEN setting.timed THEN io.extend_time END AS extend_stall_ms,
       io.fsyncs AS syncs,
       CASE WHEN setting.timed THEN io.fsync_time END AS sync_stall_ms,
       io.hits,
       io.evictions
  FROM pg_stat_io io
  JOIN (VALUES (true, current_setting('track_wal_io_timing')::boolean),
               (false, current_setting('track_io_timing')::boolean)) setting (wal, timed)
    ON setting.wal = (io.object = 'wal')

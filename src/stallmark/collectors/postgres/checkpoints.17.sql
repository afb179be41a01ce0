SELECT extract(epoch FROM statement_timestamp())::float8 AS server_time,
       format('reset %s start %s', extract(epoch FROM stats_reset),
              extract(epoch FROM pg_postmaster_start_time())) AS epoch,
       num_timed AS timed,
       num_requested AS requested,
       NULL::bigint AS done,
       write_time AS write_ms,
       sync_time AS sync_ms,
       buffers_written
  FROM pg_stat_checkpointer

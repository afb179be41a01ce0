SELECT extract(epoch FROM statement_timestamp())::float8 AS server_time,
       format('reset %s start %s', extract(epoch FROM stats_reset),
              extract(epoch FROM pg_postmaster_start_time())) AS epoch,
       checkpoints_timed AS timed,
       checkpoints_req AS requested,
       NULL::bigint AS done,
       checkpoint_write_time AS write_ms,
       checkpoint_sync_time AS sync_ms,
       buffers_checkpoint AS buffers_written
  FROM pg_stat_bgwriter

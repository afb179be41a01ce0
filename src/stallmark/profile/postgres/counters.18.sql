SELECT 'log_bytes' AS counter, extract(epoch FROM stats_reset)::text AS epoch, wal_bytes::bigint AS value
  FROM pg_stat_wal
 UNION ALL
SELECT 'log_flushes',
       extract(epoch FROM max(stats_reset))::text,
       sum(CASE WHEN current_setting('wal_sync_method') IN ('open_sync', 'open_datasync') THEN writes
                ELSE fsyncs END)::bigint
  FROM pg_stat_io
 WHERE object = 'wal'
 UNION ALL
SELECT 'checkpoint_pages', extract(epoch FROM stats_reset)::text, buffers_written
  FROM pg_stat_checkpointer
 UNION ALL
SELECT 'background_pages', extract(epoch FROM stats_reset)::text, buffers_clean
  FROM pg_stat_bgwriter
 UNION ALL
SELECT 'parallel_workers',
       format('%s of %s', extract(epoch FROM max(stats_reset)), count(*)),
       sum(parallel_workers_launched)::bigint
  FROM pg_stat_database

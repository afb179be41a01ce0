-- Extends are writes: a file grown by a block is written to the device all the same. Times stand still while they are
-- not taken, so that is an epoch of its own.
SELECT CASE io.object WHEN 'temp relation' THEN 'tempdb' ELSE 'data' END AS file_class,
       concat_ws(' ', extract(epoch FROM max(io.stats_reset)),
                 CASE WHEN NOT current_setting('track_io_timing')::boolean THEN 'untimed' END) AS epoch,
       sum(io.reads)::bigint AS reads,
       sum(io.reads * io.op_bytes)::bigint AS read_bytes,
       CASE WHEN current_setting('track_io_timing')::boolean THEN sum(io.read_time) END AS read_stall_ms,
       sum(coalesce(io.writes, 0) + coalesce(io.extends, 0))::bigint AS writes,
       sum((coalesce(io.writes, 0) + coalesce(io.extends, 0)) * io.op_bytes)::bigint AS write_bytes,
       CASE WHEN current_setting('track_io_timing')::boolean
            THEN sum(coalesce(io.write_time, 0) + coalesce(io.extend_time, 0)) END AS write_stall_ms
  FROM pg_stat_io io
 GROUP BY 1
 UNION ALL
SELECT 'log',
       concat_ws(' ', extract(epoch FROM wal.stats_reset),
                 CASE WHEN NOT current_setting('track_wal_io_timing')::boolean THEN 'untimed' END),
       NULL, NULL, NULL,
       wal.wal_write,
       NULL,
       CASE WHEN current_setting('track_wal_io_timing')::boolean THEN wal.wal_write_time + wal.wal_sync_time END
  FROM pg_stat_wal wal

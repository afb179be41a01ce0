-- Extends are writes: a file grown by a block is written to the device all the same. Times stand still while they are
-- not taken, so that is an epoch of its own. wal_bytes is the length of the records. Each flush writes the page that the
-- last one ended in again, and fills up that in which it ends: on average a page more than its records.
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
       wal.wal_bytes::bigint
           + current_setting('wal_block_size')::bigint
             * CASE WHEN current_setting('wal_sync_method') IN ('open_sync', 'open_datasync') THEN wal.wal_write
                    ELSE wal.wal_sync END,
       CASE WHEN current_setting('track_wal_io_timing')::boolean THEN wal.wal_write_time + wal.wal_sync_time END
  FROM pg_stat_wal wal

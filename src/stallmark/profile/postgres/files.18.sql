-- Extends are writes: a file grown by a block is written to the device all the same. A write of the log lasts until it
-- is on disk, so what its syncs took belongs to it. Times stand still while they are not taken, so that is an epoch of
-- its own.
SELECT CASE io.object WHEN 'temp relation' THEN 'tempdb' WHEN 'wal' THEN 'log' ELSE 'data' END AS file_class,
       concat_ws(' ', extract(epoch FROM max(io.stats_reset)), CASE WHEN NOT bool_and(setting.timed) THEN 'untimed' END)
           AS epoch,
       sum(io.reads)::bigint AS reads,
       sum(io.read_bytes)::bigint AS read_bytes,
       CASE WHEN bool_and(setting.timed) THEN sum(io.read_time) END AS read_stall_ms,
       sum(coalesce(io.writes, 0) + coalesce(io.extends, 0))::bigint AS writes,
       sum(coalesce(io.write_bytes, 0) + coalesce(io.extend_bytes, 0))::bigint AS write_bytes,
       CASE WHEN bool_and(setting.timed)
            THEN sum(coalesce(io.write_time, 0) + coalesce(io.extend_time, 0)
                     + CASE io.object WHEN 'wal' THEN coalesce(io.fsync_time, 0) ELSE 0 END) END AS write_stall_ms
  FROM pg_stat_io io
  JOIN (VALUES (true, current_setting('track_wal_io_timing')::boolean),
               (false, current_setting('track_io_timing')::boolean)) setting (wal, timed)
    ON setting.wal = (io.object = 'wal')
 GROUP BY 1

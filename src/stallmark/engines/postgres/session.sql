-- [own_io]
-- What this session has read and written so far, in tables, indexes and temporary tables, as it has made it known.
SELECT sum(io.reads)::bigint AS reads,
       sum(io.read_bytes)::bigint AS read_bytes,
       sum(io.hits)::bigint AS hits,
       CASE WHEN current_setting('track_io_timing')::boolean THEN (1000 * sum(io.read_time))::bigint END AS read_us,
       sum(io.writes)::bigint AS writes
  FROM pg_stat_get_backend_io(pg_backend_pid()) io
 WHERE io.object <> 'wal'

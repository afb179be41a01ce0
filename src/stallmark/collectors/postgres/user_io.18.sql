SELECT format('reset %s session %s', extract(epoch FROM min(io.stats_reset)),
              extract(epoch FROM min(session.backend_start))) AS epoch,
       session.pid,
       sum(io.reads)::bigint AS reads,
       sum(io.read_bytes)::bigint AS read_bytes,
       CASE WHEN current_setting('track_io_timing')::boolean THEN sum(io.read_time) END AS read_stall_ms,
       sum(io.writes)::bigint AS writes,
       sum(io.write_bytes)::bigint AS write_bytes,
       CASE WHEN current_setting('track_io_timing')::boolean THEN sum(io.write_time) END AS write_stall_ms,
       sum(io.hits)::bigint AS hits
  FROM pg_stat_activity session, pg_stat_get_backend_io(session.pid) io
 WHERE session.application_name = 'stallmark-user'
   AND session.backend_type IS DISTINCT FROM 'parallel worker'
   AND session.datname = current_database()
   AND io.object <> 'wal'
 GROUP BY session.pid

-- A parallel worker hands in its counts when it ends, and they are gone with it: pg_stat_io alone has them.
SELECT format('reset %s start %s', extract(epoch FROM max(io.stats_reset)),
              extract(epoch FROM pg_postmaster_start_time())) AS epoch,
       session.application_name AS application,
       string_agg(DISTINCT concat(session.pid, ' since ', extract(epoch FROM session.backend_start)), ',') AS sessions,
       sum(io.reads)::bigint AS reads,
       sum(io.read_bytes)::bigint AS read_bytes,
       CASE WHEN current_setting('track_io_timing')::boolean THEN sum(io.read_time) END AS read_stall_ms,
       sum(io.writes)::bigint AS writes,
       sum(io.write_bytes)::bigint AS write_bytes,
       CASE WHEN current_setting('track_io_timing')::boolean THEN sum(io.write_time) END AS write_stall_ms,
       sum(io.extends)::bigint AS extends,
       sum(io.extend_bytes)::bigint AS extend_bytes,
       sum(io.hits)::bigint AS hits
  FROM pg_stat_activity session, pg_stat_get_backend_io(session.pid) io
 WHERE (session.application_name LIKE 'stallmark-user%' OR session.application_name LIKE 'stallmark-stream%')
   AND session.backend_type IS DISTINCT FROM 'parallel worker'
   AND session.datname IN (current_database())
   AND io.object <> 'wal'
 GROUP BY session.application_name

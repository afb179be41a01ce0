SELECT state,
       wait_event_type AS event_type,
       wait_event AS event,
       count(*)::int AS users,
       extract(epoch FROM clock_timestamp() - min(xact_start))::float8 AS oldest_s
  FROM pg_stat_activity
 WHERE state NOT LIKE 'idle%'
   AND backend_type IN ('client backend', 'parallel worker')
   AND pid <> pg_backend_pid()
 GROUP BY state, wait_event_type, wait_event

-- A role without pg_read_all_stats sees that a session of another role exists, but neither its start nor its state.
SELECT application_name AS application,
       state,
       wait_event_type AS event_type,
       wait_event AS event,
       backend_start IS NULL AS hidden,
       count(*)::int AS users
  FROM pg_stat_activity
 WHERE application_name LIKE 'stallmark-user%'
   AND backend_type IS DISTINCT FROM 'parallel worker'
   AND datname IN (current_database())
 GROUP BY application_name, state, wait_event_type, wait_event, backend_start IS NULL

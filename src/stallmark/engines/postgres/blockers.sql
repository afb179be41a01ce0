-- The sessions that keep ours in this database from a lock. Which of ours wait is not asked: a role that takes on another
-- is not shown that of its own sessions.
SELECT DISTINCT
       other.pid,
       coalesce(other.application_name, '') AS application,
       coalesce(other.usename::text, '') AS role,
       coalesce(host(other.client_addr), '') AS client
  FROM pg_stat_activity AS ours
 CROSS JOIN unnest(pg_blocking_pids(ours.pid)) AS blocking (pid)
  JOIN pg_stat_activity AS other ON other.pid = blocking.pid
 WHERE ours.datname = current_database()
   AND ours.application_name LIKE 'stallmark-%'
 ORDER BY other.pid

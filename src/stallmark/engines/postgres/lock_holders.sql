-- The sessions that have a lock of ours in this database, by the lock's name.
SELECT l.pid,
       coalesce(a.application_name, '') AS application,
       coalesce(a.usename::text, '') AS role,
       coalesce(host(a.client_addr), '') AS client
  FROM pg_locks AS l
  LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
 WHERE l.locktype = 'advisory'
   AND l.granted
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND (l.classid::bigint << 32 | l.objid::bigint) = hashtext(%s)
   AND l.objsubid = 1

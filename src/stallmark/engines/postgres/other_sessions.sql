-- The sessions in this database that are not Stallmark's. What a role may not see of others is null.
SELECT pid,
       coalesce(application_name, '') AS application,
       usename::text AS role,
       coalesce(host(client_addr), '') AS client
  FROM pg_stat_activity
 WHERE datname = current_database()
   AND pid <> pg_backend_pid()
   AND usename IS NOT NULL
   AND leader_pid IS NULL
   AND coalesce(backend_type, 'client backend') = 'client backend'
   AND coalesce(application_name, '') NOT LIKE 'stallmark-%'
 ORDER BY pid

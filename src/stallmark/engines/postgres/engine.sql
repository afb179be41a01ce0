-- [tablespaces]
-- Tablespaces of the database and of what lies elsewhere in it: name, and directory with what was put there. No row
-- where everything lies in the data directory.
SELECT
    'tablespace ' || s.spcname AS name,
    CONCAT_WS(': ', PG_TABLESPACE_LOCATION(s.oid), STRING_AGG(c.oid::regclass::text, ', ' ORDER BY c.oid)) AS place
FROM pg_tablespace AS s
INNER JOIN pg_database AS d ON d.datname = CURRENT_DATABASE()
LEFT JOIN pg_class AS c
    ON
        s.oid = c.reltablespace AND c.relkind IN ('r', 'i')
        AND c.relnamespace <> 'pg_toast'::regnamespace  -- goes with its table
WHERE s.spcname NOT IN ('pg_default', 'pg_global') AND (c.oid IS NOT NULL OR s.oid = d.dattablespace)
GROUP BY s.oid, s.spcname
ORDER BY s.spcname;

-- [most_connections]
-- The least of the limits on connections of this login to this database, and what it is a limit of. Those of a role and
-- of a database hold for no superuser; below 0 there is none.
SELECT most, limited_by
  FROM (SELECT sum(setting::int * CASE name WHEN 'max_connections' THEN 1 ELSE -1 END)::int AS most,
               'its max_connections' AS limited_by
          FROM pg_settings
         WHERE name IN ('max_connections', 'superuser_reserved_connections', 'reserved_connections')
         UNION ALL
        SELECT rolconnlimit, format('the role''s limit (ALTER ROLE %%I CONNECTION LIMIT)', rolname)
          FROM pg_roles
         WHERE rolname = session_user AND NOT rolsuper
         UNION ALL
        SELECT d.datconnlimit, format('the database''s limit (ALTER DATABASE %%I CONNECTION LIMIT)', d.datname)
          FROM pg_database AS d, pg_roles AS r
         WHERE %(one_database)s AND d.datname = current_database() AND r.rolname = session_user AND NOT r.rolsuper
       ) AS limits
 WHERE most >= 0
 ORDER BY most
 LIMIT 1

-- [blockers]
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

-- [other_sessions]
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

-- [role_settings]
-- What the role, the database or both give to our sessions: name, value, and the statement that gives another one.
-- What counts first stands first. Values of extensions may be secrets.
SELECT split_part(given, '=', 1) AS name,
       substr(given, strpos(given, '=') + 1) AS value,
       CASE
       WHEN s.setrole = 0 AND s.setdatabase = 0 THEN 'ALTER ROLE ALL'
       WHEN s.setrole = 0 THEN format('ALTER DATABASE %I', current_database())
       WHEN s.setdatabase = 0 THEN format('ALTER ROLE %I', session_user)
       ELSE format('ALTER ROLE %I IN DATABASE %I', session_user, current_database())
       END AS statement
  FROM pg_db_role_setting AS s, unnest(s.setconfig) AS given
 WHERE s.setdatabase IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
   AND s.setrole IN (0, (SELECT oid FROM pg_roles WHERE rolname = session_user))
   AND split_part(given, '=', 1) NOT LIKE '%.%'
 ORDER BY s.setrole <> 0 DESC, s.setdatabase <> 0 DESC, name

-- [schemas_in_use]
-- The schemas in which users of the database have tables, views, sequences, types and routines, with the names of all.
-- What an extension brought along is not theirs, and the sequence of a column comes and goes with it.
SELECT n.nspname AS schema_name, array_agg(DISTINCT o.name ORDER BY o.name) AS names
  FROM (SELECT c.tableoid AS catalog, c.oid, c.relnamespace AS schema, c.relname::text AS name
          FROM pg_class AS c
         WHERE c.relkind IN ('r', 'p', 'f', 'v', 'm', 'S', 'c')
         UNION ALL
        SELECT p.tableoid, p.oid, p.pronamespace, p.proname::text
          FROM pg_proc AS p
         UNION ALL
        SELECT t.tableoid, t.oid, t.typnamespace, t.typname::text
          FROM pg_type AS t
         WHERE t.typtype IN ('d', 'e')) AS o
  JOIN pg_namespace AS n ON n.oid = o.schema
 WHERE n.nspname <> 'information_schema'
   AND n.nspname !~ '^pg_'
   AND NOT EXISTS (SELECT 1
                     FROM pg_depend AS d
                    WHERE d.classid = o.catalog
                      AND d.objid = o.oid
                      AND d.objsubid = 0
                      AND (d.deptype = 'e' OR d.deptype IN ('a', 'i') AND d.refclassid = 'pg_class'::regclass))
 GROUP BY n.nspname

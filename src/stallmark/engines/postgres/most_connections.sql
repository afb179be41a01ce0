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

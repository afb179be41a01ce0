-- The tablespaces in which tables can lie, and whether this user may make one there: the database's own needs no right.
SELECT
    s.spcname AS tablespace,
    s.oid = d.dattablespace OR HAS_TABLESPACE_PRIVILEGE(s.oid, 'CREATE') AS may
FROM pg_tablespace AS s
CROSS JOIN pg_database AS d
WHERE d.datname = CURRENT_DATABASE() AND s.spcname <> 'pg_global'
ORDER BY s.spcname;

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

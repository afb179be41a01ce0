-- Where the tables of a schema lie: a row for each table (no index name) and each of its keys and indexes. What says
-- nothing of it (0) lies in the tablespace of the database.
SELECT
    COALESCE(t.relname, c.relname) AS table_name,
    CASE WHEN t.relname IS NOT NULL THEN c.relname END AS index_name,
    s.spcname AS tablespace
FROM pg_class AS c
INNER JOIN pg_namespace AS n ON c.relnamespace = n.oid
INNER JOIN pg_database AS d ON d.datname = CURRENT_DATABASE()
INNER JOIN pg_tablespace AS s ON s.oid = COALESCE(NULLIF(c.reltablespace, 0), d.dattablespace)
LEFT JOIN pg_index AS i ON c.oid = i.indexrelid
LEFT JOIN pg_class AS t ON i.indrelid = t.oid
WHERE n.nspname = %s AND c.relkind IN ('r', 'i')
ORDER BY table_name, index_name NULLS FIRST;

-- Keys, indexes and foreign keys of the tables of a schema (parameter, given twice): table, name.
SELECT
    tablename AS table_name,
    indexname AS item_name
FROM pg_indexes
WHERE schemaname = %s
UNION ALL
SELECT
    t.relname AS table_name,
    c.conname AS item_name
FROM pg_constraint AS c
INNER JOIN pg_class AS t ON c.conrelid = t.oid
INNER JOIN pg_namespace AS n ON t.relnamespace = n.oid
WHERE n.nspname = %s AND c.contype = 'f';

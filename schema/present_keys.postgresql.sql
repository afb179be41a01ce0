-- Keys, indexes, foreign keys and checks of the tables of a schema (parameter): table, name, and whether the server
-- uses it and knows that all rows fulfil it.
SELECT
    t.relname AS table_name,
    k.item_name,
    k.is_trusted
FROM pg_class AS t
INNER JOIN pg_namespace AS n ON t.relnamespace = n.oid
INNER JOIN (
    SELECT
        x.indrelid AS table_oid,
        i.relname AS item_name,
        x.indisvalid AS is_trusted
    FROM pg_index AS x
    INNER JOIN pg_class AS i ON x.indexrelid = i.oid
    UNION ALL
    SELECT
        c.conrelid AS table_oid,
        c.conname AS item_name,
        c.convalidated AS is_trusted
    FROM pg_constraint AS c
    WHERE c.contype IN ('c', 'f')
) AS k ON t.oid = k.table_oid
WHERE n.nspname = %s;

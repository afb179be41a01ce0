-- Keys, indexes, foreign keys and checks of the tables of a schema (parameter): table, name, and whether the server
-- uses it and knows that all rows fulfil it.
SELECT
    t.name AS table_name,
    k.item_name,
    k.is_trusted
FROM sys.tables AS t
INNER JOIN (
    SELECT
        i.object_id,
        i.name AS item_name,
        IIF(i.is_disabled = 1, 0, 1) AS is_trusted
    FROM sys.indexes AS i
    WHERE i.name IS NOT NULL
    UNION ALL
    SELECT
        f.parent_object_id AS object_id,
        f.name AS item_name,
        IIF(f.is_disabled = 1 OR f.is_not_trusted = 1, 0, 1) AS is_trusted
    FROM sys.foreign_keys AS f
    UNION ALL
    SELECT
        c.parent_object_id AS object_id,
        c.name AS item_name,
        IIF(c.is_disabled = 1 OR c.is_not_trusted = 1, 0, 1) AS is_trusted
    FROM sys.check_constraints AS c
) AS k ON t.object_id = k.object_id
WHERE t.schema_id = SCHEMA_ID(?);

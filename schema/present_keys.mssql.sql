-- Keys, indexes and foreign keys of the tables of a schema (parameter, given twice): table, name.
SELECT
    t.name AS table_name,
    i.name AS item_name
FROM sys.indexes AS i
INNER JOIN sys.tables AS t ON i.object_id = t.object_id
WHERE t.schema_id = SCHEMA_ID(?) AND i.name IS NOT NULL
UNION ALL
SELECT
    t.name AS table_name,
    f.name AS item_name
FROM sys.foreign_keys AS f
INNER JOIN sys.tables AS t ON f.parent_object_id = t.object_id
WHERE t.schema_id = SCHEMA_ID(?);

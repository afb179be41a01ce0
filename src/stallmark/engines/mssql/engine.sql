-- [columns_without_statistics]
-- The columns of a table of which no statistic is the first: an index has counted its own with every row when it was
-- built. Those of a columnstore are empty, and texts without a limit are in no condition of ours.
SELECT c.name
  FROM sys.columns AS c
 WHERE c.object_id = OBJECT_ID(N'{table}')
   AND c.max_length <> -1
   AND NOT EXISTS (SELECT 1
                     FROM sys.stats_columns AS k
                     LEFT JOIN sys.indexes AS i ON i.object_id = k.object_id AND i.index_id = k.stats_id
                    WHERE k.object_id = c.object_id
                      AND k.column_id = c.column_id
                      AND k.stats_column_id = 1
                      AND COALESCE(i.type_desc, N'') NOT LIKE N'%COLUMNSTORE')
 ORDER BY c.column_id

-- [schemas_in_use]
-- What users of the database have made in its schemas: tables, views, procedures and the like.
-- Azure SQL Database has a view in sys that does not count as Microsoft's.
SELECT s.name AS schema_name, o.name
  FROM sys.objects AS o
  JOIN sys.schemas AS s ON s.schema_id = o.schema_id
 WHERE o.is_ms_shipped = 0
   AND o.parent_object_id = 0
   AND s.name NOT IN (N'sys', N'INFORMATION_SCHEMA')
 ORDER BY s.name, o.name

-- [writable]
-- What this login may do in the database: 1 or 0, NULL if not known; and a table of ours that it may not read and
-- change. By the right to execute what is in a schema it may do so through procedures.
SELECT HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'CREATE TABLE') AS creates_tables,
       HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'CREATE SCHEMA') AS creates_schemas,
       CASE WHEN SCHEMA_ID(N'stallmark') IS NULL THEN 0 ELSE 1 END AS is_built,
       (SELECT MIN(s.name + N'.' + t.name)
          FROM sys.tables AS t
          JOIN sys.schemas AS s ON s.schema_id = t.schema_id
         WHERE s.name IN {marks}
           AND (HAS_PERMS_BY_NAME(QUOTENAME(s.name) + N'.' + QUOTENAME(t.name), 'OBJECT', 'SELECT') = 0
                OR HAS_PERMS_BY_NAME(QUOTENAME(s.name) + N'.' + QUOTENAME(t.name), 'OBJECT', 'INSERT') = 0
                OR HAS_PERMS_BY_NAME(QUOTENAME(s.name) + N'.' + QUOTENAME(t.name), 'OBJECT', 'UPDATE') = 0
                OR HAS_PERMS_BY_NAME(QUOTENAME(s.name) + N'.' + QUOTENAME(t.name), 'OBJECT', 'DELETE') = 0)
           AND (s.name = N'stallmark' OR HAS_PERMS_BY_NAME(QUOTENAME(s.name), 'SCHEMA', 'EXECUTE') = 0)) AS only_read

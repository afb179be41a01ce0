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

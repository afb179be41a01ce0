-- What users of the database have made in its schemas: tables, views, procedures and the like.
-- Azure SQL Database has a view in sys that does not count as Microsoft's.
SELECT s.name AS schema_name, o.name
  FROM sys.objects AS o
  JOIN sys.schemas AS s ON s.schema_id = o.schema_id
 WHERE o.is_ms_shipped = 0
   AND o.parent_object_id = 0
   AND s.name NOT IN (N'sys', N'INFORMATION_SCHEMA')
 ORDER BY s.name, o.name

-- The indexes and heaps of a schema with their pages, the smallest first.
SELECT QUOTENAME(s.name) + '.' + QUOTENAME(t.name) AS table_name, i.index_id, SUM(a.used_pages) AS pages
  FROM sys.tables AS t
  JOIN sys.schemas AS s ON s.schema_id = t.schema_id
  JOIN sys.indexes AS i ON i.object_id = t.object_id
  JOIN sys.partitions AS p ON p.object_id = i.object_id AND p.index_id = i.index_id
  JOIN sys.allocation_units AS a ON a.container_id = p.partition_id
 WHERE s.name = ?
 GROUP BY s.name, t.name, i.index_id
HAVING SUM(a.used_pages) > 0
 ORDER BY pages

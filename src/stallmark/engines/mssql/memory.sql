-- [indexes]
-- The indexes and heaps of a schema with their pages, the smallest first. What counting rows does not read is read by
-- `long_texts`, an expression that goes through every text without a limit, in its own pages, and in a columnstore by
-- a checksum of every column.
SELECT QUOTENAME(s.name) + '.' + QUOTENAME(t.name) AS table_name, i.index_id, SUM(a.used_pages) AS pages,
       CASE WHEN i.index_id < 2 AND i.type_desc LIKE '%COLUMNSTORE' THEN 1 ELSE 0 END AS is_columnstore,
       CASE WHEN i.index_id < 2
            THEN (SELECT STRING_AGG('CHARINDEX(CHAR(1), ' + QUOTENAME(c.name) + ')', ' + ')
                    FROM sys.columns AS c
                   WHERE c.object_id = t.object_id
                     AND c.max_length = -1
                     AND TYPE_NAME(c.system_type_id) IN ('varchar', 'nvarchar'))
       END AS long_texts
  FROM sys.tables AS t
  JOIN sys.schemas AS s ON s.schema_id = t.schema_id
  JOIN sys.indexes AS i ON i.object_id = t.object_id
  JOIN sys.partitions AS p ON p.object_id = i.object_id AND p.index_id = i.index_id
  JOIN sys.allocation_units AS a ON a.container_id = CASE a.type WHEN 2 THEN p.partition_id ELSE p.hobt_id END
 WHERE s.name = ?
 GROUP BY s.name, t.name, t.object_id, i.index_id, i.type_desc
HAVING SUM(a.used_pages) > 0
 ORDER BY SUM(a.used_pages)

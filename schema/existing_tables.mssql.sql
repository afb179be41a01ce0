-- Where the tables of a schema lie: a row for each heap or clustered index (0, 1) and each other index. None of ours
-- is partitioned.
SELECT t.name AS table_name,
       i.index_id,
       i.name AS index_name,
       d.name AS filegroup,
       LOWER(p.data_compression_desc) AS compression
  FROM sys.tables AS t
  JOIN sys.schemas AS s ON s.schema_id = t.schema_id
  JOIN sys.indexes AS i ON i.object_id = t.object_id
  JOIN sys.data_spaces AS d ON d.data_space_id = i.data_space_id
  JOIN sys.partitions AS p ON p.object_id = i.object_id AND p.index_id = i.index_id AND p.partition_number = 1
 WHERE s.name = ?
 ORDER BY t.name, i.index_id;

-- Where the tables of a schema lie: a row for each heap or clustered index (0, 1) and each other index. All partitions
-- of ours lie in one filegroup and have one compression.
SELECT t.name AS table_name,
       i.index_id,
       i.name AS index_name,
       COALESCE(first_one.name, d.name) AS filegroup,
       LOWER(p.data_compression_desc) AS compression,
       CASE WHEN i.type IN (5, 6) THEN 'columnstore' ELSE 'rowstore' END AS storage,
       by_order.name AS ordered_by,
       by_partition.name AS partitioned_by,
       f.fanout AS partitions,
       i.fill_factor
  FROM sys.tables AS t
  JOIN sys.schemas AS s ON s.schema_id = t.schema_id
  JOIN sys.indexes AS i ON i.object_id = t.object_id
  JOIN sys.data_spaces AS d ON d.data_space_id = i.data_space_id
  JOIN sys.partitions AS p ON p.object_id = i.object_id AND p.index_id = i.index_id AND p.partition_number = 1
  LEFT JOIN sys.partition_schemes AS ps ON ps.data_space_id = i.data_space_id
  LEFT JOIN sys.partition_functions AS f ON f.function_id = ps.function_id
  LEFT JOIN sys.destination_data_spaces AS dds
    ON dds.partition_scheme_id = ps.data_space_id AND dds.destination_id = 1
  LEFT JOIN sys.data_spaces AS first_one ON first_one.data_space_id = dds.data_space_id
  LEFT JOIN sys.index_columns AS oc
    ON oc.object_id = i.object_id AND oc.index_id = i.index_id AND oc.key_ordinal = 1
  LEFT JOIN sys.columns AS by_order ON by_order.object_id = oc.object_id AND by_order.column_id = oc.column_id
  LEFT JOIN sys.index_columns AS pc
    ON pc.object_id = i.object_id AND pc.index_id = i.index_id AND pc.partition_ordinal = 1
  LEFT JOIN sys.columns AS by_partition
    ON by_partition.object_id = pc.object_id AND by_partition.column_id = pc.column_id
 WHERE s.name = ?
 ORDER BY t.name, i.index_id;

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

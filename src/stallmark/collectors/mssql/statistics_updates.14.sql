SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       home.name + '.' + held.name AS [table],
       counted.name AS [statistic],
       CAST(DATEDIFF(millisecond, STATS_DATE(counted.object_id, counted.stats_id), GETDATE()) / 1000.0 AS float) AS age_s
  FROM sys.stats AS counted
  JOIN sys.tables AS held ON held.object_id = counted.object_id
  JOIN sys.schemas AS home ON home.schema_id = held.schema_id
 WHERE STATS_DATE(counted.object_id, counted.stats_id) > DATEADD(second, -25, GETDATE())
   AND home.name <> 'stallmark'

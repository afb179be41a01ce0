-- STATS_DATE is of the server's local clock, which jumps by an hour: it is compared, never subtracted.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       home.name + '.' + held.name AS [table],
       counted.name AS [statistic],
       CONVERT(varchar(23), STATS_DATE(counted.object_id, counted.stats_id), 126) AS counted_at
  FROM sys.stats AS counted
  JOIN sys.tables AS held ON held.object_id = counted.object_id
  JOIN sys.schemas AS home ON home.schema_id = held.schema_id
 WHERE home.name <> 'stallmark'

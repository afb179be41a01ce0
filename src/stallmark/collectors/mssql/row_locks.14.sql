-- One row for each index (and heap) of a table, its partitions added up. NULL for the object means all of them: it is
-- what the metadata cache holds that is read, never a page. An index counts from when its metadata came into the cache.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       CONCAT('start ', CONVERT(varchar(23), MIN(started.create_date), 126), ' object ', waited.object_id) AS epoch,
       CONCAT(SCHEMA_NAME(home.schema_id), '.', home.name, '/', COALESCE(part.name, 'heap')) AS entity,
       CONCAT(SCHEMA_NAME(home.schema_id), '.', home.name) AS relation,
       SUM(waited.row_lock_wait_count) AS row_lock_waits,
       SUM(waited.row_lock_wait_in_ms) AS row_lock_wait_ms,
       SUM(waited.page_lock_wait_count) AS page_lock_waits,
       SUM(waited.page_lock_wait_in_ms) AS page_lock_wait_ms,
       SUM(waited.page_latch_wait_count) AS page_latch_waits,
       SUM(waited.page_latch_wait_in_ms) AS page_latch_wait_ms,
       SUM(waited.page_io_latch_wait_count) AS page_io_latch_waits,
       SUM(waited.page_io_latch_wait_in_ms) AS page_io_latch_wait_ms
  FROM sys.dm_db_index_operational_stats(DB_ID(), NULL, NULL, NULL) AS waited
  JOIN sys.objects AS home ON home.object_id = waited.object_id AND home.type = 'U' AND home.is_ms_shipped = 0
  LEFT JOIN sys.indexes AS part ON part.object_id = waited.object_id AND part.index_id = waited.index_id
  LEFT JOIN sys.databases AS started ON started.database_id = 2
 GROUP BY waited.object_id, home.schema_id, home.name, part.name

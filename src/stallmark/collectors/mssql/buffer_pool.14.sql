SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       CASE buffer.database_id WHEN 32767 THEN 'resource database' ELSE DB_NAME(buffer.database_id) END AS [database],
       buffer.file_id AS [file],
       buffer.page_type,
       COUNT_BIG(*) AS pages,
       SUM(CAST(buffer.is_modified AS bigint)) AS dirty,
       SUM(CAST(buffer.is_in_bpool_extension AS bigint)) AS in_extension,
       SUM(CASE WHEN buffer.read_microsec > 0 THEN CAST(1 AS bigint) ELSE 0 END) AS [read],
       SUM(buffer.read_microsec) AS read_us
  FROM sys.dm_os_buffer_descriptors AS buffer
 GROUP BY buffer.database_id, buffer.file_id, buffer.page_type

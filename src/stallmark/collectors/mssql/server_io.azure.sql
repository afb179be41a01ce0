-- Azure SQL Database shows the files of our own database only: there is no foreign I/O to see.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       CONCAT('handle ', CONVERT(varchar(66), io.file_handle, 1)) AS epoch,
       CONCAT(DB_NAME(), '/', COALESCE(own.name, CONCAT('file ', io.file_id))) AS entity,
       CASE COALESCE(own.type, CASE io.file_id WHEN 2 THEN 1 ELSE 0 END) WHEN 1 THEN 'wal' ELSE 'data' END AS kind,
       io.num_of_reads AS reads,
       io.num_of_bytes_read AS read_bytes,
       io.io_stall_read_ms AS read_stall_ms,
       io.num_of_writes AS writes,
       io.num_of_bytes_written AS write_bytes,
       io.io_stall_write_ms AS write_stall_ms,
       io.io_stall_queued_read_ms AS queued_read_stall_ms,
       io.io_stall_queued_write_ms AS queued_write_stall_ms,
       io.size_on_disk_bytes AS size_bytes,
       own.physical_name AS path,
       CONVERT(varchar(66), io.file_handle, 1) AS handle
  FROM sys.dm_io_virtual_file_stats(DB_ID(), NULL) AS io
  LEFT JOIN sys.database_files AS own ON own.file_id = io.file_id

-- All files of all databases: what others read and write slows us down as well.
-- sys.master_files shows nothing to a login without VIEW ANY DEFINITION, and no file may be lost for that.
-- tempdb is created whenever the server starts; a restored or attached database has new handles.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       CONCAT('start ', CONVERT(varchar(23), started.create_date, 126),
              ' database ', io.database_id, ' of ', CONVERT(varchar(23), home.create_date, 126),
              ' handle ', CONVERT(varchar(66), io.file_handle, 1)) AS epoch,
       CONCAT(COALESCE(DB_NAME(io.database_id), CONCAT('database ', io.database_id)), '/',
              COALESCE(own.name, named.name COLLATE DATABASE_DEFAULT,
                       CONCAT('file ', io.file_id))) AS entity,
       CASE WHEN io.database_id = 2 THEN 'temp'
            WHEN io.database_id IN (DB_ID())
            THEN CASE COALESCE(own.type, named.type, CASE io.file_id WHEN 2 THEN 1 ELSE 0 END)
                 WHEN 1 THEN 'wal' ELSE 'data' END
            ELSE 'foreign' END AS kind,
       io.num_of_reads AS reads,
       io.num_of_bytes_read AS read_bytes,
       io.io_stall_read_ms AS read_stall_ms,
       io.num_of_writes AS writes,
       io.num_of_bytes_written AS write_bytes,
       io.io_stall_write_ms AS write_stall_ms,
       io.io_stall_queued_read_ms AS queued_read_stall_ms,
       io.io_stall_queued_write_ms AS queued_write_stall_ms,
       io.size_on_disk_bytes AS size_bytes,
       COALESCE(own.physical_name, named.physical_name COLLATE DATABASE_DEFAULT) AS path,
       CONVERT(varchar(66), io.file_handle, 1) AS handle
  FROM sys.dm_io_virtual_file_stats(NULL, NULL) AS io
  LEFT JOIN sys.master_files AS named ON named.database_id = io.database_id AND named.file_id = io.file_id
  LEFT JOIN (SELECT DB_ID() AS database_id, here.file_id, here.type, here.name COLLATE DATABASE_DEFAULT AS name,
                    here.physical_name COLLATE DATABASE_DEFAULT AS physical_name
               FROM sys.database_files AS here) AS own
    ON own.database_id = io.database_id AND own.file_id = io.file_id
  LEFT JOIN sys.databases AS home ON home.database_id = io.database_id
  LEFT JOIN sys.databases AS started ON started.database_id = 2

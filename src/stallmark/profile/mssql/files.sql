-- Of a connection to master all databases of users are meant, else the one it is to: the others are "other" then.
-- sys.master_files shows nothing to a login without VIEW ANY DEFINITION: file 2 is then taken to be the log.
-- RDS has a database of its own on every server, rdsadmin; the server has some from number 32761 on (model_msdb and
-- model_replicatedmaster from 2022 on, and its resources). A restored or attached database has new handles.
SELECT CONCAT(io.database_id, '/', io.file_id) AS entity,
       io.database_id,
       DB_NAME(io.database_id) AS [database],
       named.name AS [file],
       CASE WHEN io.database_id = 2 THEN 'tempdb'
            WHEN (io.database_id IN (1, 3, 4) OR io.database_id >= 32761)
                 AND io.database_id <> CASE DB_ID() WHEN 1 THEN 0 ELSE DB_ID() END
                 OR DB_ID() <> 1 AND io.database_id <> DB_ID()
                 OR DB_NAME(io.database_id) COLLATE Latin1_General_CI_AS = 'rdsadmin' THEN 'other'
            WHEN COALESCE(named.type, CASE io.file_id WHEN 2 THEN 1 ELSE 0 END) = 1 THEN 'log'
            ELSE 'data' END AS file_class,
       CONCAT(CONVERT(varchar(23), home.create_date, 126), ' ', CONVERT(varchar(66), io.file_handle, 1)) AS epoch,
       io.num_of_reads AS reads,
       io.num_of_bytes_read AS read_bytes,
       CAST(io.io_stall_read_ms AS float) AS read_stall_ms,
       io.num_of_writes AS writes,
       io.num_of_bytes_written AS write_bytes,
       CAST(io.io_stall_write_ms AS float) AS write_stall_ms,
       io.size_on_disk_bytes AS size_bytes
  FROM sys.dm_io_virtual_file_stats(NULL, NULL) AS io
  LEFT JOIN sys.master_files AS named ON named.database_id = io.database_id AND named.file_id = io.file_id
  LEFT JOIN sys.databases AS home ON home.database_id = io.database_id

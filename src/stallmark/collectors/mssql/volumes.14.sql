-- Where the server runs, and the volumes under the files of our databases and of tempdb.
SELECT DISTINCT CAST(SERVERPROPERTY('MachineName') AS nvarchar(128)) AS machine, v.volume_mount_point AS mount_point
  FROM sys.databases AS d
  JOIN sys.master_files AS f ON f.database_id = d.database_id
 CROSS APPLY sys.dm_os_volume_stats(f.database_id, f.file_id) AS v
 WHERE d.database_id IN (DB_ID(), 2)

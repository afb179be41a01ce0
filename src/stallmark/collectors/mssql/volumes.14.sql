-- Where the server runs, and the volumes under the files of our databases and of tempdb. sys.master_files would show
-- nothing to a login without VIEW ANY DEFINITION.
SELECT DISTINCT CAST(SERVERPROPERTY('MachineName') AS nvarchar(128)) AS machine, v.volume_mount_point AS mount_point
  FROM (SELECT DB_ID() AS database_id, here.file_id
          FROM sys.database_files AS here
         UNION ALL
        SELECT 2 AS database_id, temp.file_id
          FROM tempdb.sys.database_files AS temp) AS f
 CROSS APPLY sys.dm_os_volume_stats(f.database_id, f.file_id) AS v

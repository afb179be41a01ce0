-- The volumes under the files of the database; sizes in bytes.
SELECT DISTINCT v.volume_mount_point, v.file_system_type, v.total_bytes, v.is_compressed
  FROM sys.database_files AS f
 CROSS APPLY sys.dm_os_volume_stats(DB_ID(), f.file_id) AS v
 ORDER BY v.volume_mount_point

-- The backup files that Stallmark has written on this server, as msdb notes them, the newest backup of each. They are
-- known by their names, and by the label that describes what is in them.
SELECT COALESCE(s.database_name, N'') AS database_name, f.physical_device_name AS path, s.backup_finish_date AS finished,
       CAST(COALESCE(s.compressed_backup_size, s.backup_size) / (SELECT COUNT(*)
                                          FROM msdb.dbo.backupmediafamily AS part
                                         WHERE part.media_set_id = s.media_set_id) AS bigint) AS bytes
  FROM msdb.dbo.backupset AS s
  JOIN msdb.dbo.backupmediafamily AS f ON f.media_set_id = s.media_set_id
 WHERE f.physical_device_name LIKE N'%stallmark-%.bak'
   AND s.description LIKE N'%"loaded_bytes"%'
   AND s.is_copy_only = 1
   AND NOT EXISTS (SELECT 1
                     FROM msdb.dbo.backupset AS later
                     JOIN msdb.dbo.backupmediafamily AS same ON same.media_set_id = later.media_set_id
                    WHERE same.physical_device_name = f.physical_device_name
                      AND later.backup_set_id > s.backup_set_id)
 ORDER BY s.database_name, f.physical_device_name

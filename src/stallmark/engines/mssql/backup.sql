-- [rights_restore]
-- What this login needs to back up the database, see all that a restore would take away, restore it and open it again:
-- 1 or 0 each. To read what a backup holds, a login must be allowed to create databases. A restore in the place of a
-- database is for two roles and its owner, and no right makes up for that.
SELECT HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'BACKUP DATABASE') AS [the right BACKUP DATABASE],
       HAS_PERMS_BY_NAME(QUOTENAME(DB_NAME()), 'DATABASE', 'VIEW DEFINITION')
           AS [the right VIEW DEFINITION in the database],
       HAS_PERMS_BY_NAME(NULL, NULL, 'CREATE ANY DATABASE') AS [the right CREATE ANY DATABASE],
       HAS_PERMS_BY_NAME(NULL, NULL, 'ALTER ANY DATABASE') AS [the right ALTER ANY DATABASE],
       CASE WHEN IS_SRVROLEMEMBER('sysadmin') = 1 OR IS_SRVROLEMEMBER('dbcreator') = 1 OR d.owner_sid = SUSER_SID()
            THEN 1 ELSE 0 END AS [the role dbcreator or the database itself]
  FROM sys.databases AS d
 WHERE d.database_id = DB_ID()

-- [in_group]
-- Whether the database has copies on other servers, 1 or 0 each: of such a one the server refuses a restore (error
-- 3104), and sys.database_mirroring has a row for every database.
SELECT CASE WHEN d.replica_id IS NULL THEN 0 ELSE 1 END AS [in an availability group],
       CASE WHEN m.mirroring_guid IS NULL THEN 0 ELSE 1 END AS [mirrored]
  FROM sys.databases AS d
  LEFT JOIN sys.database_mirroring AS m ON m.database_id = d.database_id
 WHERE d.database_id = DB_ID()

-- [kept_copies]
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

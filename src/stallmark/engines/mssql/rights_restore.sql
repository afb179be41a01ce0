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

-- Whether the database has copies on other servers, 1 or 0 each: of such a one the server refuses a restore (error
-- 3104), and sys.database_mirroring has a row for every database.
SELECT CASE WHEN d.replica_id IS NULL THEN 0 ELSE 1 END AS [in an availability group],
       CASE WHEN m.mirroring_guid IS NULL THEN 0 ELSE 1 END AS [mirrored]
  FROM sys.databases AS d
  LEFT JOIN sys.database_mirroring AS m ON m.database_id = d.database_id
 WHERE d.database_id = DB_ID()

-- The database's replica here, if it is in an availability group: one row. A commit waits for each synchronous secondary.
-- sys.availability_replicas is empty for a login without VIEW ANY DEFINITION: then the last two are NULL.
SELECT g.role_desc AS role, r.availability_mode_desc AS commit_mode,
       CASE WHEN r.replica_id IS NOT NULL
            THEN (SELECT COUNT(*)
                    FROM sys.dm_hadr_database_replica_states AS o
                    JOIN sys.availability_replicas AS a ON a.replica_id = o.replica_id
                   WHERE o.group_database_id = d.group_database_id AND o.is_local = 0 AND a.availability_mode = 1)
       END AS synchronous_secondaries
  FROM sys.dm_hadr_database_replica_states AS d
  LEFT JOIN sys.dm_hadr_availability_replica_states AS g ON g.replica_id = d.replica_id
  LEFT JOIN sys.availability_replicas AS r ON r.replica_id = d.replica_id
 WHERE d.database_id = DB_ID() AND d.is_local = 1

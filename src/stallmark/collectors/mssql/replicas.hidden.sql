-- The other replicas of our databases, whether this login may see their names and modes or not.
SELECT COUNT(*) AS replicas
  FROM sys.dm_hadr_database_replica_states AS hidden
 WHERE hidden.database_id IN (DB_ID())
   AND hidden.is_local = 0

-- The other replicas of our databases, as the primary sees them; without an availability group there is none. Their
-- servers' names are nobody's business: they are numbered.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       CONCAT('replica ', DENSE_RANK() OVER (ORDER BY other.replica_id)) AS replica,
       DB_NAME(other.database_id) AS [database],
       replica.availability_mode_desc AS commit_mode,
       other.synchronization_state_desc AS state,
       other.log_send_queue_size * 1024 AS send_queue_bytes,
       other.redo_queue_size * 1024 AS redo_queue_bytes
  FROM sys.dm_hadr_database_replica_states AS other
  JOIN sys.availability_replicas AS replica ON replica.replica_id = other.replica_id
 WHERE other.database_id IN (DB_ID())
   AND other.is_local = 0

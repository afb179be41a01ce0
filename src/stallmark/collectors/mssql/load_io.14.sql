-- A session's counts are those of its requests that have ended.
SELECT CONCAT('start ', CONVERT(varchar(23), MAX(started.create_date), 126)) AS epoch,
       session.program_name AS application,
       STRING_AGG(CAST(CONCAT(session.session_id, ' since ', CONVERT(varchar(23), session.login_time, 126))
                       AS varchar(max)), ',') AS sessions,
       SUM(session.reads) AS reads,
       SUM(session.writes) AS writes,
       SUM(session.logical_reads) AS logical_reads
  FROM sys.dm_exec_sessions AS session
  LEFT JOIN sys.databases AS started ON started.database_id = 2
 WHERE (session.program_name LIKE 'stallmark-user%' OR session.program_name LIKE 'stallmark-stream%')
   AND session.database_id IN (DB_ID())
 GROUP BY session.program_name

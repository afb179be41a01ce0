-- tempdb is created whenever the server starts.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_clock,
       CONVERT(varchar(23), started.create_date, 126) AS [start],
       CAST(own.cpu_time AS bigint) AS own_cpu_ms
  FROM sys.dm_exec_sessions AS own
  LEFT JOIN sys.databases AS started ON started.database_id = 2
 WHERE own.session_id = @@SPID

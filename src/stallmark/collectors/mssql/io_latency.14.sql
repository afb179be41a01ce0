-- The histograms of our event sessions, as the server keeps them in its memory: XML, a slot for each duration.
SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       CONCAT('session ', CONVERT(varchar(23), session.create_time, 126)) AS epoch,
       session.name AS session,
       session.dropped_event_count AS dropped,
       target.target_data AS histogram
  FROM sys.dm_xe_sessions AS session
  JOIN sys.dm_xe_session_targets AS target ON target.event_session_address = session.address
 WHERE session.name LIKE 'stallmark[_]%'
       AND target.target_name = 'histogram'

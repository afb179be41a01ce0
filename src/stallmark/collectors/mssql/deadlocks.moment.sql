-- The server's time, and the file that its session system_health writes to, in XML.
SELECT CONVERT(varchar(23), SYSUTCDATETIME(), 126) AS now,
       (SELECT MAX(target.target_data)
          FROM sys.dm_xe_sessions AS session
          JOIN sys.dm_xe_session_targets AS target ON target.event_session_address = session.address
         WHERE session.name = 'system_health' AND target.target_name = 'event_file') AS written

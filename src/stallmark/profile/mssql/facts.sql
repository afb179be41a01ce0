SELECT CAST(SERVERPROPERTY('ServerName') AS nvarchar(128)) AS name,
       CAST(SERVERPROPERTY('ProductVersion') AS nvarchar(128)) AS version,
       CAST(SERVERPROPERTY('Edition') AS nvarchar(128)) AS edition,
       (SELECT COUNT(*) FROM sys.dm_os_schedulers WHERE status = 'VISIBLE ONLINE') AS cores,
       system.physical_memory_kb * 1024 AS memory_bytes,
       system.committed_target_kb * 1024 AS pool_bytes
  FROM sys.dm_os_sys_info AS system

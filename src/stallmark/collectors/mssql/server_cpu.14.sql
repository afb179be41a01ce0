SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       CONCAT('start ', CONVERT(varchar(23), system.sqlserver_start_time, 126)) AS epoch,
       CAST(system.process_user_time_ms / 1000.0 AS float) AS user_s,
       CAST(system.process_kernel_time_ms / 1000.0 AS float) AS system_s
  FROM sys.dm_os_sys_info AS system

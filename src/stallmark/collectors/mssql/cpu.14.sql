SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       machine.ms_ticks - ring.[timestamp] AS age_ms,
       system.host_platform AS platform,
       CAST(ring.record AS nvarchar(max)) AS record
  FROM sys.dm_os_ring_buffers AS ring
 CROSS JOIN sys.dm_os_sys_info AS machine
 CROSS JOIN sys.dm_os_host_info AS system
 WHERE ring.ring_buffer_type = 'RING_BUFFER_SCHEDULER_MONITOR'
   AND ring.record LIKE '%<SystemHealth>%'
   AND machine.ms_ticks - ring.[timestamp] < 150000

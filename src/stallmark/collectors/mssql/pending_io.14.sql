SELECT CAST(DATEDIFF_BIG(millisecond, '19700101', SYSUTCDATETIME()) / 1000.0 AS float) AS server_time,
       CONVERT(varchar(66), pending.io_handle, 1) AS handle,
       pending.io_type AS type,
       CAST(pending.io_pending AS bit) AS with_system,
       COUNT(*) AS requests,
       MAX(pending.io_pending_ms_ticks) AS longest_ms
  FROM sys.dm_io_pending_io_requests AS pending
 GROUP BY pending.io_handle, pending.io_type, CAST(pending.io_pending AS bit)

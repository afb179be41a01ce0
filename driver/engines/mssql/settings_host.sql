-- The machine or container the server runs on: one row.
SELECT host_platform AS platform, host_distribution AS distribution, host_release AS release
  FROM sys.dm_os_host_info

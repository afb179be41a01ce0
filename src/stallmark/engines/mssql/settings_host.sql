-- The machine or container the server runs on: one row.
SELECT h.host_platform AS platform, h.host_distribution AS distribution, h.host_release AS release
  FROM sys.dm_os_host_info AS h

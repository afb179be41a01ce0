-- Whether data files grow without being zeroed first: one row.
SELECT TOP (1) s.instant_file_initialization_enabled AS instant_file_initialization
  FROM sys.dm_server_services AS s
 WHERE s.instant_file_initialization_enabled IS NOT NULL

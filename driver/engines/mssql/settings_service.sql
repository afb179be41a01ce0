-- Whether data files grow without being zeroed first: one row.
SELECT TOP (1) instant_file_initialization_enabled AS instant_file_initialization
  FROM sys.dm_server_services
 WHERE instant_file_initialization_enabled IS NOT NULL

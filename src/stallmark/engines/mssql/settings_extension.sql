-- A part of the buffer pool on a device: one row.
SELECT e.state_description AS buffer_pool_extension, e.current_size_in_kb AS extension_kb
  FROM sys.dm_os_buffer_pool_extension_configuration AS e

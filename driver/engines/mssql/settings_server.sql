-- Of the instance as it started; needs VIEW SERVER STATE.
SELECT 'server ' + setting AS name, value
  FROM (SELECT CAST(cpu_count AS nvarchar(200)) AS cpus,
               CAST(scheduler_count AS nvarchar(200)) AS schedulers,
               CAST(physical_memory_kb AS nvarchar(200)) AS physical_memory_kb,
               CAST(sql_memory_model_desc AS nvarchar(200)) AS memory_model,
               CAST(virtual_machine_type_desc AS nvarchar(200)) AS virtual_machine,
               CONVERT(nvarchar(200), sqlserver_start_time, 126) AS started
          FROM sys.dm_os_sys_info) AS i
UNPIVOT (value FOR setting IN (cpus, schedulers, physical_memory_kb, memory_model, virtual_machine, started)) AS u
UNION ALL
SELECT 'server host', CAST(host_platform + ' ' + host_distribution + ' ' + host_release AS nvarchar(200))
  FROM sys.dm_os_host_info
UNION ALL
SELECT 'server instant file initialization', CAST(instant_file_initialization_enabled AS nvarchar(200))
  FROM sys.dm_server_services
 WHERE instant_file_initialization_enabled IS NOT NULL
UNION ALL
SELECT 'server buffer pool extension', CAST(state_description AS nvarchar(200))
  FROM sys.dm_os_buffer_pool_extension_configuration

-- Of the instance as it started: one row; needs VIEW SERVER STATE.
SELECT i.cpu_count AS cpus, i.scheduler_count AS schedulers, i.physical_memory_kb,
       i.sql_memory_model_desc AS memory_model, i.softnuma_configuration_desc AS soft_numa,
       i.virtual_machine_type_desc AS virtual_machine,
       i.sqlserver_start_time AS started
  FROM sys.dm_os_sys_info AS i

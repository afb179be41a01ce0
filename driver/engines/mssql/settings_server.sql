-- Of the instance as it started: one row; needs VIEW SERVER STATE.
SELECT cpu_count AS cpus, scheduler_count AS schedulers, physical_memory_kb, sql_memory_model_desc AS memory_model,
       virtual_machine_type_desc AS virtual_machine, sqlserver_start_time AS started
  FROM sys.dm_os_sys_info

-- The Resource Governor, and the group that a virtual user's session is put into: one row; none if it is hidden.
SELECT g.is_enabled AS enabled, w.name AS workload_group, p.name AS pool, p.max_cpu_percent, p.cap_cpu_percent,
       p.max_memory_percent, p.max_iops_per_volume, w.request_max_memory_grant_percent, w.max_dop
  FROM sys.resource_governor_configuration AS g
 CROSS JOIN sys.dm_exec_sessions AS s
  LEFT JOIN sys.dm_resource_governor_workload_groups AS w ON w.group_id = s.group_id
  LEFT JOIN sys.dm_resource_governor_resource_pools AS p ON p.pool_id = w.pool_id
 WHERE s.session_id = @@SPID

-- What the workload group of a virtual user's session may have of tempdb's data files, from 2025 on: one row; none if
-- the group is hidden, as NULL is no limit.
SELECT w.group_max_tempdb_data_mb AS tempdb_limit_mb, w.group_max_tempdb_data_percent AS tempdb_limit_percent
  FROM sys.dm_exec_sessions AS s
  JOIN sys.resource_governor_workload_groups AS w ON w.group_id = s.group_id
 WHERE s.session_id = @@SPID

-- [settings]
-- Of the server's configuration, what decides I/O.
SELECT c.name, CAST(c.value_in_use AS bigint) AS value
  FROM sys.configurations AS c
 WHERE c.name IN ('max server memory (MB)', 'min server memory (MB)', 'max degree of parallelism',
                  'cost threshold for parallelism', 'recovery interval (min)', 'backup compression default',
                  'max worker threads', 'lightweight pooling', 'priority boost', 'optimize for ad hoc workloads',
                  'backup compression algorithm', 'hardware offload enabled', 'ADR Cleaner Thread Count',
                  'ADR Preallocation Factor', 'ADR cleaner lock timeout (s)', 'SLOG memory quota (%)',
                  'availability group commit time (ms)', 'tiered memory enabled', 'max server tiered memory (MB)',
                  'max lock manager cache memory (%)')

-- [settings_scoped]
-- The database's own configuration: parallelism, estimation, feedback.
SELECT s.name, CAST(s.value AS nvarchar(128)) AS value
  FROM sys.database_scoped_configurations AS s

-- [settings_tuning]
-- What the server changes by itself: plans that it forces.
SELECT t.name, t.actual_state_desc AS value
  FROM sys.database_automatic_tuning_options AS t

-- [settings_database]
-- Of the database, what decides I/O: one row.
SELECT d.recovery_model_desc AS recovery_model, d.page_verify_option_desc AS page_verify,
       d.snapshot_isolation_state_desc AS snapshot_isolation,
       d.is_read_committed_snapshot_on AS read_committed_snapshot, d.compatibility_level,
       d.delayed_durability_desc AS delayed_durability,
       d.target_recovery_time_in_seconds AS target_recovery_time_s, d.is_query_store_on AS query_store,
       d.is_encrypted AS encrypted, d.is_auto_shrink_on AS auto_shrink, d.log_reuse_wait_desc AS log_reuse_wait,
       d.is_auto_close_on AS auto_close,
       d.collation_name AS collation, d.is_auto_create_stats_on AS auto_create_statistics,
       d.is_auto_update_stats_on AS auto_update_statistics,
       d.is_auto_update_stats_async_on AS auto_update_statistics_later
  FROM sys.databases AS d
 WHERE d.database_id = DB_ID()

-- [settings_accelerated.15]
-- Accelerated database recovery, from 2019 on: one row.
SELECT d.is_accelerated_database_recovery_on AS accelerated_recovery
  FROM sys.databases AS d
 WHERE d.database_id = DB_ID()

-- [settings_log]
-- Whether the log is kept until it is backed up: in no database before its first full backup. One row.
SELECT CASE WHEN r.last_log_backup_lsn IS NULL THEN 0 ELSE 1 END AS log_kept_for_backup
  FROM sys.database_recovery_status AS r
 WHERE r.database_id = DB_ID()

-- [settings_server]
-- Of the instance as it started: one row; needs VIEW SERVER STATE.
SELECT i.cpu_count AS cpus, i.scheduler_count AS schedulers, i.physical_memory_kb,
       i.sql_memory_model_desc AS memory_model, i.softnuma_configuration_desc AS soft_numa,
       i.virtual_machine_type_desc AS virtual_machine,
       i.sqlserver_start_time AS started
  FROM sys.dm_os_sys_info AS i

-- [settings_host]
-- The machine or container the server runs on: one row.
SELECT h.host_platform AS platform, h.host_distribution AS distribution, h.host_release AS release
  FROM sys.dm_os_host_info AS h

-- [settings_service]
-- Whether data files grow without being zeroed first: one row.
SELECT TOP (1) s.instant_file_initialization_enabled AS instant_file_initialization
  FROM sys.dm_server_services AS s
 WHERE s.instant_file_initialization_enabled IS NOT NULL

-- [settings_extension]
-- A part of the buffer pool on a device: one row.
SELECT e.state_description AS buffer_pool_extension, e.current_size_in_kb AS extension_kb
  FROM sys.dm_os_buffer_pool_extension_configuration AS e

-- [settings_query_store]
-- Query Store as it is, not as it was asked for: one row; none in a system database.
SELECT q.actual_state_desc AS mode, q.query_capture_mode_desc AS capture
  FROM sys.database_query_store_options AS q

-- [settings_replica]
-- The database's replica here, if it is in an availability group: one row. A commit waits for each synchronous secondary.
-- sys.availability_replicas is empty for a login without VIEW ANY DEFINITION: then the last two are NULL.
SELECT g.role_desc AS role, r.availability_mode_desc AS commit_mode,
       CASE WHEN r.replica_id IS NOT NULL
            THEN (SELECT COUNT(*)
                    FROM sys.dm_hadr_database_replica_states AS o
                    JOIN sys.availability_replicas AS a ON a.replica_id = o.replica_id
                   WHERE o.group_database_id = d.group_database_id AND o.is_local = 0 AND a.availability_mode = 1)
       END AS synchronous_secondaries
  FROM sys.dm_hadr_database_replica_states AS d
  LEFT JOIN sys.dm_hadr_availability_replica_states AS g ON g.replica_id = d.replica_id
  LEFT JOIN sys.availability_replicas AS r ON r.replica_id = d.replica_id
 WHERE d.database_id = DB_ID() AND d.is_local = 1

-- [settings_governor]
-- The Resource Governor, and the group that a virtual user's session is put into: one row; none if it is hidden.
SELECT g.is_enabled AS enabled, w.name AS workload_group, p.name AS pool, p.max_cpu_percent, p.cap_cpu_percent,
       p.max_memory_percent, p.max_iops_per_volume, w.request_max_memory_grant_percent, w.max_dop
  FROM sys.resource_governor_configuration AS g
 CROSS JOIN sys.dm_exec_sessions AS s
  LEFT JOIN sys.dm_resource_governor_workload_groups AS w ON w.group_id = s.group_id
  LEFT JOIN sys.dm_resource_governor_resource_pools AS p ON p.pool_id = w.pool_id
 WHERE s.session_id = @@SPID

-- [settings_tempdb.15]
-- Whether tempdb's system tables are in memory, from 2019 on: one row.
SELECT CAST(SERVERPROPERTY('IsTempdbMetadataMemoryOptimized') AS int) AS metadata_in_memory

-- [settings_locking.17]
-- Optimized locking, from 2025 on: one row.
SELECT CAST(DATABASEPROPERTYEX(DB_NAME(), 'IsOptimizedLockingOn') AS int) AS optimized_locking

-- [settings_feeds.16]
-- What reads the log beside the server, from 2022 on, and whether tables keep a ledger: one row.
SELECT d.is_change_feed_enabled AS change_feed, d.is_ledger_on AS ledger
  FROM sys.databases AS d
 WHERE d.database_id = DB_ID()

-- [settings_tempdb_recovery.17]
-- Accelerated database recovery of tempdb, from 2025 on: one row.
SELECT d.is_accelerated_database_recovery_on AS accelerated_recovery
  FROM sys.databases AS d
 WHERE d.database_id = 2

-- [settings_tempdb_limit.17]
-- What the workload group of a virtual user's session may have of tempdb's data files, from 2025 on: one row; none if
-- the group is hidden, as NULL is no limit.
SELECT w.group_max_tempdb_data_mb AS tempdb_limit_mb, w.group_max_tempdb_data_percent AS tempdb_limit_percent
  FROM sys.dm_exec_sessions AS s
  JOIN sys.resource_governor_workload_groups AS w ON w.group_id = s.group_id
 WHERE s.session_id = @@SPID

-- [settings_volumes]
-- The volumes under the files of the database; sizes in bytes.
SELECT DISTINCT v.volume_mount_point, v.file_system_type, v.total_bytes, v.is_compressed
  FROM sys.database_files AS f
 CROSS APPLY sys.dm_os_volume_stats(DB_ID(), f.file_id) AS v
 ORDER BY v.volume_mount_point

-- [settings_files]
-- The files of the database and of tempdb: where they lie, how large they are, and how they grow (pages of 8 KiB, or %).
-- sys.master_files, which alone has the size that tempdb begins with, is empty for a login without VIEW ANY DEFINITION.
SELECT own.database_name, own.name, own.type_desc, own.physical_name,
       CAST(COALESCE(own.size, named.size) AS bigint) AS pages, own.growth, own.is_percent_growth
  FROM (SELECT DB_ID() AS database_id, DB_NAME() COLLATE DATABASE_DEFAULT AS database_name, here.file_id,
               here.name COLLATE DATABASE_DEFAULT AS name, here.type_desc COLLATE DATABASE_DEFAULT AS type_desc,
               here.physical_name COLLATE DATABASE_DEFAULT AS physical_name, here.size, here.growth,
               here.is_percent_growth
          FROM sys.database_files AS here
         UNION ALL
        SELECT 2, 'tempdb' COLLATE DATABASE_DEFAULT, temp.file_id, temp.name COLLATE DATABASE_DEFAULT,
               temp.type_desc COLLATE DATABASE_DEFAULT, temp.physical_name COLLATE DATABASE_DEFAULT, NULL, temp.growth,
               temp.is_percent_growth
          FROM tempdb.sys.database_files AS temp) AS own
  LEFT JOIN sys.master_files AS named ON named.database_id = own.database_id AND named.file_id = own.file_id
 ORDER BY own.database_id, own.file_id

-- [facts]
SELECT current_setting('server_version') AS version,
       (SELECT system_identifier::text FROM pg_control_system()) AS mark,
       coalesce(host(inet_server_addr()), 'localhost') || ':' || current_setting('port') AS name,
       pg_size_bytes(current_setting('shared_buffers')) AS pool_bytes,
       current_setting('track_io_timing')::boolean AS times_files,
       current_setting('track_wal_io_timing')::boolean AS times_log,
       pg_has_role('pg_read_all_stats', 'USAGE') AS sees_sessions

-- [moment]
SELECT extract(epoch FROM statement_timestamp())::float8 AS server_clock,
       extract(epoch FROM pg_postmaster_start_time())::text AS start

-- [files.16]
-- Extends are writes: a file grown by a block is written to the device all the same. Times stand still while they are
-- not taken, so that is an epoch of its own. wal_bytes is the length of the records. Each flush writes the page that the
-- last one ended in again, and fills up that in which it ends: on average a page more than its records.
SELECT CASE io.object WHEN 'temp relation' THEN 'tempdb' ELSE 'data' END AS file_class,
       concat_ws(' ', extract(epoch FROM max(io.stats_reset)),
                 CASE WHEN NOT current_setting('track_io_timing')::boolean THEN 'untimed' END) AS epoch,
       sum(io.reads)::bigint AS reads,
       sum(io.reads * io.op_bytes)::bigint AS read_bytes,
       CASE WHEN current_setting('track_io_timing')::boolean THEN sum(io.read_time) END AS read_stall_ms,
       sum(coalesce(io.writes, 0) + coalesce(io.extends, 0))::bigint AS writes,
       sum((coalesce(io.writes, 0) + coalesce(io.extends, 0)) * io.op_bytes)::bigint AS write_bytes,
       CASE WHEN current_setting('track_io_timing')::boolean
            THEN sum(coalesce(io.write_time, 0) + coalesce(io.extend_time, 0)) END AS write_stall_ms
  FROM pg_stat_io io
 GROUP BY 1
 UNION ALL
SELECT 'log',
       concat_ws(' ', extract(epoch FROM wal.stats_reset),
                 CASE WHEN NOT current_setting('track_wal_io_timing')::boolean THEN 'untimed' END),
       NULL, NULL, NULL,
       wal.wal_write,
       wal.wal_bytes::bigint
           + current_setting('wal_block_size')::bigint
             * CASE WHEN current_setting('wal_sync_method') IN ('open_sync', 'open_datasync') THEN wal.wal_write
                    ELSE wal.wal_sync END,
       CASE WHEN current_setting('track_wal_io_timing')::boolean THEN wal.wal_write_time + wal.wal_sync_time END
  FROM pg_stat_wal wal

-- [files.18]
-- Extends are writes: a file grown by a block is written to the device all the same. A write of the log lasts until it
-- is on disk, so what its syncs took belongs to it. Times stand still while they are not taken, so that is an epoch of
-- its own.
SELECT CASE io.object WHEN 'temp relation' THEN 'tempdb' WHEN 'wal' THEN 'log' ELSE 'data' END AS file_class,
       concat_ws(' ', extract(epoch FROM max(io.stats_reset)), CASE WHEN NOT bool_and(setting.timed) THEN 'untimed' END)
           AS epoch,
       sum(io.reads)::bigint AS reads,
       sum(io.read_bytes)::bigint AS read_bytes,
       CASE WHEN bool_and(setting.timed) THEN sum(io.read_time) END AS read_stall_ms,
       sum(coalesce(io.writes, 0) + coalesce(io.extends, 0))::bigint AS writes,
       sum(coalesce(io.write_bytes, 0) + coalesce(io.extend_bytes, 0))::bigint AS write_bytes,
       CASE WHEN bool_and(setting.timed)
            THEN sum(coalesce(io.write_time, 0) + coalesce(io.extend_time, 0)
                     + CASE io.object WHEN 'wal' THEN coalesce(io.fsync_time, 0) ELSE 0 END) END AS write_stall_ms
  FROM pg_stat_io io
  JOIN (VALUES (true, current_setting('track_wal_io_timing')::boolean),
               (false, current_setting('track_io_timing')::boolean)) setting (wal, timed)
    ON setting.wal = (io.object = 'wal')
 GROUP BY 1

-- [counters.16]
SELECT 'log_bytes' AS counter, extract(epoch FROM stats_reset)::text AS epoch, wal_bytes::bigint AS value
  FROM pg_stat_wal
 UNION ALL
SELECT 'log_flushes',
       extract(epoch FROM stats_reset)::text,
       CASE WHEN current_setting('wal_sync_method') IN ('open_sync', 'open_datasync') THEN wal_write ELSE wal_sync END
  FROM pg_stat_wal
 UNION ALL
SELECT 'checkpoint_pages', extract(epoch FROM stats_reset)::text, buffers_checkpoint
  FROM pg_stat_bgwriter
 UNION ALL
SELECT 'background_pages', extract(epoch FROM stats_reset)::text, buffers_clean + buffers_backend
  FROM pg_stat_bgwriter

-- [counters.17]
SELECT 'log_bytes' AS counter, extract(epoch FROM stats_reset)::text AS epoch, wal_bytes::bigint AS value
  FROM pg_stat_wal
 UNION ALL
SELECT 'log_flushes',
       extract(epoch FROM stats_reset)::text,
       CASE WHEN current_setting('wal_sync_method') IN ('open_sync', 'open_datasync') THEN wal_write ELSE wal_sync END
  FROM pg_stat_wal
 UNION ALL
SELECT 'checkpoint_pages', extract(epoch FROM stats_reset)::text, buffers_written
  FROM pg_stat_checkpointer
 UNION ALL
SELECT 'background_pages', extract(epoch FROM stats_reset)::text, buffers_clean
  FROM pg_stat_bgwriter

-- [counters.18]
SELECT 'log_bytes' AS counter, extract(epoch FROM stats_reset)::text AS epoch, wal_bytes::bigint AS value
  FROM pg_stat_wal
 UNION ALL
SELECT 'log_flushes',
       extract(epoch FROM max(stats_reset))::text,
       sum(CASE WHEN current_setting('wal_sync_method') IN ('open_sync', 'open_datasync') THEN writes
                ELSE fsyncs END)::bigint
  FROM pg_stat_io
 WHERE object = 'wal'
 UNION ALL
SELECT 'checkpoint_pages', extract(epoch FROM stats_reset)::text, buffers_written
  FROM pg_stat_checkpointer
 UNION ALL
SELECT 'background_pages', extract(epoch FROM stats_reset)::text, buffers_clean
  FROM pg_stat_bgwriter
 UNION ALL
SELECT 'parallel_workers',
       format('%s of %s', extract(epoch FROM max(stats_reset)), count(*)),
       sum(parallel_workers_launched)::bigint
  FROM pg_stat_database

-- [databases]
-- A crash drops the counters but leaves a database's reset time empty, as it was: the archiver's tells.
SELECT known.counter,
       format('%s of %s since %s', sums.resets, sums.databases, extract(epoch FROM archiver.stats_reset)) AS epoch,
       known.value
  FROM (SELECT count(*) AS databases,
               extract(epoch FROM max(stats_reset)) AS resets,
               sum(xact_commit + xact_rollback)::bigint AS transactions,
               sum(blks_read)::bigint AS pages_read,
               sum(blks_read + blks_hit)::bigint AS page_lookups,
               sum(numbackends)::bigint AS connections
          FROM pg_stat_database) sums
 CROSS JOIN pg_stat_archiver archiver
 CROSS JOIN LATERAL (VALUES ('transactions', sums.transactions),
                            ('pages_read', sums.pages_read),
                            ('page_lookups', sums.page_lookups),
                            ('connections', sums.connections)) known (counter, value)

-- [sessions]
SELECT state,
       wait_event_type AS event_type,
       wait_event AS event,
       count(*)::int AS users,
       extract(epoch FROM clock_timestamp() - min(xact_start))::float8 AS oldest_s
  FROM pg_stat_activity
 WHERE state NOT LIKE 'idle%'
   AND backend_type IN ('client backend', 'parallel worker')
   AND pid <> pg_backend_pid()
 GROUP BY state, wait_event_type, wait_event

-- [sizes]
SELECT sum(pg_database_size(oid))::bigint AS data,
       (SELECT sum(size)::bigint FROM pg_ls_waldir()) AS log
  FROM pg_database
 WHERE has_database_privilege(oid, 'CONNECT') OR pg_has_role('pg_read_all_stats', 'USAGE')

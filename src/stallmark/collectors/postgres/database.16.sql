-- A crash drops the counters but leaves a database's reset time empty, as it was: the archiver's tells.
SELECT extract(epoch FROM statement_timestamp())::float8 AS server_time,
       format('reset %s since %s start %s', extract(epoch FROM db.stats_reset), extract(epoch FROM all_stats.stats_reset),
              extract(epoch FROM pg_postmaster_start_time())) AS epoch,
       coalesce(db.datname, '(shared by all)') AS database,
       coalesce(db.datname IN (current_database()), false) AS own,
       db.xact_commit AS commits,
       db.xact_rollback AS rollbacks,
       db.blks_read AS blocks_read,
       db.blks_hit AS blocks_hit,
       db.deadlocks,
       db.temp_bytes
  FROM pg_stat_database db, pg_stat_archiver all_stats

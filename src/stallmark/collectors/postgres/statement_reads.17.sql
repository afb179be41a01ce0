-- An entry that was evicted or reset comes again with a later stats_since.
SELECT extract(epoch FROM clock_timestamp())::float8 AS server_time,
       concat('reset ', info.stats_reset, ' since ', counted.stats_since) AS epoch,
       ours.statement,
       counted.queryid::text AS plan,
       counted.calls AS executions,
       counted.shared_blks_hit + counted.shared_blks_read + counted.local_blks_hit + counted.local_blks_read
           AS logical_reads,
       counted.shared_blks_read + counted.local_blks_read AS physical_reads
  FROM (VALUES {statements}) AS ours (statement, database, queryid)
  JOIN pg_database AS place
    ON place.datname = ours.database
  JOIN {schema}.pg_stat_statements(false) AS counted
    ON counted.queryid = ours.queryid AND counted.dbid = place.oid
 CROSS JOIN {schema}.pg_stat_statements_info() AS info
 WHERE counted.userid = current_user::regrole AND counted.toplevel

SELECT format('table %s reset %s since %s start %s', io.relid, extract(epoch FROM db.stats_reset),
              extract(epoch FROM all_stats.stats_reset), extract(epoch FROM pg_postmaster_start_time())) AS epoch,
       format('%s.%s', io.schemaname, io.relname) AS relation,
       io.heap_blks_read + coalesce(io.toast_blks_read, 0) AS heap_reads,
       io.heap_blks_hit + coalesce(io.toast_blks_hit, 0) AS heap_hits,
       coalesce(io.idx_blks_read, 0) + coalesce(io.tidx_blks_read, 0) AS index_reads,
       coalesce(io.idx_blks_hit, 0) + coalesce(io.tidx_blks_hit, 0) AS index_hits
  FROM pg_statio_user_tables io, pg_stat_database db, pg_stat_archiver all_stats
 WHERE db.datname = current_database()

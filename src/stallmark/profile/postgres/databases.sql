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

-- Who waits for a row holds its tuple lock and waits for the end of the transaction that has the row, or waits for the
-- tuple lock that an earlier one in the queue holds: either way he has to do with one tuple lock, and it names the table.
-- Without any he waits for a key that another transaction is inserting, or for a newer version of his row.
SELECT session.datname AS database, waiting.relation::bigint AS number, count(*)::int AS users
  FROM (SELECT pid, max(relation) FILTER (WHERE locktype = 'tuple') AS relation
          FROM pg_locks
         WHERE locktype IN ('transactionid', 'tuple')
         GROUP BY pid
        HAVING NOT bool_and(granted)) waiting
  JOIN pg_stat_activity session ON session.pid = waiting.pid
 WHERE session.application_name LIKE 'stallmark-user%'
   AND session.datname IN (current_database())
 GROUP BY session.datname, waiting.relation

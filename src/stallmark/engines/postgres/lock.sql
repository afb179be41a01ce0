-- [which_server]
-- By what a server is known again: its start, whether it is a standby, and where it was reached.
SELECT extract(epoch FROM pg_postmaster_start_time())::float8 AS started,
       pg_is_in_recovery() AS is_standby,
       concat_ws(':', coalesce(host(inet_server_addr()), 'a socket'), current_setting('port')) AS address

-- [timeline]
-- The line of the log's history, by the name of its file. Aurora refuses it, and every standby.
SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline

-- [lock_holders]
-- The sessions that have a lock of ours in this database, by the lock's name.
SELECT l.pid,
       coalesce(a.application_name, '') AS application,
       coalesce(a.usename::text, '') AS role,
       coalesce(host(a.client_addr), '') AS client
  FROM pg_locks AS l
  LEFT JOIN pg_stat_activity AS a ON a.pid = l.pid
 WHERE l.locktype = 'advisory'
   AND l.granted
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
   AND (l.classid::bigint << 32 | l.objid::bigint) = hashtext(%s)
   AND l.objsubid = 1

-- [reads_only]
-- Why nothing can be written any more in this session, as a clause; empty if it can.
SELECT CASE
       WHEN pg_is_in_recovery() THEN 'it is a standby now'
       WHEN current_setting('default_transaction_read_only') = 'on' THEN 'default_transaction_read_only is on'
       ELSE ''
       END AS why

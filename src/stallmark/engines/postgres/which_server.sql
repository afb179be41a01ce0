-- By what a server is known again: its start, its line of the log's history, and where it was reached.
SELECT extract(epoch FROM pg_postmaster_start_time())::float8 AS started,
       CASE WHEN NOT pg_is_in_recovery() THEN left(pg_walfile_name(pg_current_wal_lsn()), 8) END AS timeline,
       concat_ws(':', coalesce(host(inet_server_addr()), 'a socket'), current_setting('port')) AS address

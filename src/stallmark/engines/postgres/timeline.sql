-- The line of the log's history, by the name of its file. Aurora refuses it, and every standby.
SELECT left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline

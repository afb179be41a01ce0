-- The server that this standby follows, as far as this role may see it. Aurora refuses it.
SELECT concat_ws(':', sender_host, sender_port) AS address FROM pg_stat_wal_receiver

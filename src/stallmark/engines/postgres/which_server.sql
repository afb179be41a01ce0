-- By what a server is known again: its start, whether it is a standby, and where it was reached.
SELECT extract(epoch FROM pg_postmaster_start_time())::float8 AS started,
       pg_is_in_recovery() AS is_standby,
       concat_ws(':', coalesce(host(inet_server_addr()), 'a socket'), current_setting('port')) AS address
